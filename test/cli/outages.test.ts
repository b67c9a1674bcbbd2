// The commands about outages: `jobs explain`, `breakers`, `queues`, `limits`, and what other commands say of held work.
import { describe, expect, inject, it } from "vitest";
import { type Bench, createBench } from "../support/cli.ts";
import { testSchema } from "../support/postgres-queue.ts";

const JOBS = `
import { defineJob } from "redrive";
export const quote = defineJob("quote", { service: "pricing", queue: "outside", run: () => "ok" });
export const mail = defineJob("mail", { run: () => "ok" });
`;
const ISO = /^\d{4}-\d\d-\d\dT.*Z$/;

interface Place extends Bench {
  readonly id: string;
  readonly store: readonly string[];
}

/** A store with one due job of a service. */
async function withJob(store: readonly string[] = []): Promise<Place> {
  const bench = createBench();
  bench.write("jobs.mjs", JOBS);
  const place = ["--jobs", "jobs.mjs", ...store];
  const { document } = await bench.json(["enqueue", "quote", "{}", ...place]);
  return { ...bench, id: document.ids[0], store };
}

describe.each<[string, () => readonly string[]]>([
  ["sqlite", () => []],
  ["postgres 18", () => ["--store", testSchema(inject("postgres18")).url]],
])("jobs explain on %s", (_name, place) => {
  it("says every reason with what happens next and when", async () => {
    const bench = await withJob(place());
    const plain = await bench.run(["jobs", "explain", bench.id, ...bench.store]);
    expect(plain).toMatchObject({ code: 0, err: "" });
    expect(plain.out).toBe(
      `${bench.id} queued\n  no_worker     no worker is alive\n                → it is taken when a worker starts that serves it\n`,
    );
    await bench.run(["breakers", "open", "pricing", "--for", "1h", "--reason", "maintenance", ...bench.store]);
    await bench.run(["queues", "pause", "outside", ...bench.store]);
    const { document } = await bench.json(["jobs", "explain", bench.id, ...bench.store]);
    expect(document).toEqual({
      id: bench.id,
      state: "paused",
      summary: "the queue outside is paused",
      reasons: [
        {
          kind: "paused",
          message: "the queue outside is paused",
          next: "it continues when an operator resumes it",
          at: null,
        },
        {
          kind: "breaker",
          message: expect.stringMatching(/^the breaker of pricing was opened by hand .* ago: maintenance$/),
          next: "a probe tries the service",
          at: expect.stringMatching(ISO),
        },
        expect.objectContaining({ kind: "no_worker" }),
      ],
    });
    const { out } = await bench.run(["jobs", "explain", bench.id, ...bench.store], { columns: 120 });
    expect(out).toContain("\u001b[33mpaused\u001b[39m");
    expect(out).toMatch(/→ a probe tries the service, \d{4}-.*Z \(in (1h|5\d(\.\d)?m)\)\n/);
  });

  it("tells parked and paused jobs from others in lists", async () => {
    const bench = await withJob(place());
    await bench.run(["enqueue", "mail", "-", "--jobs", "jobs.mjs", ...bench.store], { stdin: "1\n2\n3\n" });
    await bench.run(["breakers", "open", "pricing", ...bench.store]);
    const shown = async (...flags: string[]): Promise<string[]> =>
      (await bench.json(["jobs", "list", ...flags, ...bench.store])).document.items.map(
        ({ type, state, shown: as }: Record<string, string>) => `${type} ${state} ${as}`,
      );
    expect(await shown()).toEqual([...Array.from({ length: 3 }, () => "mail queued queued"), "quote queued parked"]);
    expect(await shown("--state", "parked")).toEqual(["quote queued parked"]);
    await bench.run(["queues", "pause", "--type", "mail", ...bench.store]);
    expect(await shown("--state", "paused")).toEqual(Array.from({ length: 3 }, () => "mail queued paused"));
    const first = await bench.json(["jobs", "list", "--state", "paused", "--limit", "2", ...bench.store]);
    expect(first.document).toMatchObject({ items: [{}, {}], next: expect.any(String) });
    const cursor = ["--cursor", first.document.next];
    const rest = await bench.json(["jobs", "list", "--state", "paused", "--limit", "2", ...cursor, ...bench.store]);
    expect(rest.document).toMatchObject({ items: [{ type: "mail" }], next: null });
    expect((await bench.json(["jobs", "show", bench.id, ...bench.store])).document.shown).toBe("parked");
    expect((await bench.run(["jobs", "show", bench.id, ...bench.store])).out).toContain(`${bench.id} parked\n`);
  });
});

describe("breakers", () => {
  it("are listed, opened, closed and reset", async () => {
    const bench = await withJob();
    expect((await bench.run(["breakers", "list"])).out).toBe("No service is known yet.\n");
    const opened = await bench.json(["breakers", "open", "pricing", "--reason", "maintenance", "--for", "1h"]);
    expect(opened.document).toEqual({
      service: "pricing",
      state: "isolated",
      since: expect.stringMatching(ISO),
      until: expect.stringMatching(ISO),
      reason: "maintenance",
      holdUntil: null,
      rampUntil: null,
      calls: 0,
      failures: 0,
      consecutive: 0,
      probes: 0,
      sick: [],
    });
    expect((await bench.json(["breakers", "list"])).document).toEqual({ items: [opened.document], next: null });
    const { out } = await bench.run(["breakers", "list"]);
    expect(out).toMatch(
      /^SERVICE +STATE +SINCE +CALLS +FAILED +IN A ROW +NEXT +WHY\npricing +open by hand +.* probe in .* maintenance\n$/,
    );
    expect((await bench.run(["breakers", "open", "pricing"])).out).toBe(
      "The breaker of pricing is open by hand until it is closed by hand.\n",
    );
    expect((await bench.run(["breakers", "close", "pricing"])).out).toBe(
      "The breaker of pricing is closed, at full load in 20s.\n",
    );
    expect((await bench.run(["breakers", "reset", "pricing"])).out).toBe("The breaker of pricing is closed.\n");
    expect((await bench.run(["breakers", "reset", "pricing", "--quiet"])).out).toBe("");
  });

  it("hold the work back from a drain, which says so and does not call it unserved", async () => {
    const bench = await withJob();
    await bench.run(["breakers", "open", "pricing"]);
    await bench.run(["queues", "pause", "outside"]);
    const held = await bench.json(["drain", "--jobs", "jobs.mjs"]);
    const causes = [
      { by: "pause", kind: "queue", name: "outside", jobs: 1 },
      { by: "breaker", kind: "service", name: "pricing", jobs: 1 },
    ];
    expect(held).toMatchObject({ code: 0, document: { claimed: 0, unserved: {}, held: causes } });
    const { err } = await bench.run(["drain", "--jobs", "jobs.mjs"]);
    expect(err).toContain("1 due job waits because the queue outside is paused.\n");
    expect(err).toContain("1 due job waits for the breaker of pricing; `breakers list` shows until when.\n");
    await bench.run(["queues", "resume", "outside"]);
    await bench.run(["breakers", "reset", "pricing"]);
    expect((await bench.json(["drain", "--jobs", "jobs.mjs"])).document).toMatchObject({ claimed: 1, completed: 1 });
  });

  it("keep parked work out of health and doctor as work that nobody takes", async () => {
    const bench = await withJob();
    expect((await bench.json(["health"])).document.oldestDueMs).toEqual(expect.any(Number));
    await bench.run(["breakers", "open", "pricing"]);
    const { code, document } = await bench.json(["health"]);
    expect({ code, document }).toMatchObject({
      code: 0,
      document: { oldestDueMs: null, breakers: ["pricing"], score: 0.75 },
    });
    const { out } = await bench.run(["doctor"]);
    expect(out).toContain("not closed: pricing\n");
    expect(out).not.toContain("due for");
  });

  it.each<[string[], number, string]>([
    [
      ["breakers", "open", "pricng"],
      0,
      'No worker, job or breaker knows a service "pricng"; did you mean "pricing"? The breaker was opened anyway.',
    ],
    [["breakers", "close", "pricng"], 1, 'did you mean "pricing"? Nothing was changed.'],
    [["breakers", "reset", "other"], 1, 'knows a service "other". Nothing was changed.'],
    [["breakers", "close", "no name"], 2, "service: expected 1 to 128 letters"],
    [["breakers", "open", "pricing", "--for", "5"], 2, 'add a unit, e.g. "5s"'],
    [["breakers", "open", "pricing", "--reason", ""], 2, "reason: expected"],
    [["breakers", "open"], 2, "missing required argument 'service'"],
    [["breakers"], 2, "expected a command of breakers: list, open, close, reset; got none"],
    [["jobs", "explain", "0199c8a2"], 1, "This looks like the beginning of an id"],
    [["jobs", "cancel", "--state", "parked", "--yes"], 2, "name the --service, --queue, --type or --tenant"],
  ])("%j ends with %i and says why", async (args, code, text) => {
    const bench = await withJob();
    const outcome = await bench.run(args);
    expect(outcome.code).toBe(code);
    expect(outcome.err).toContain(text);
  });
});

describe("queues", () => {
  it("are listed, paused and resumed, and so are types, services and tenants", async () => {
    const bench = await withJob();
    expect((await bench.json(["queues", "list"])).document).toEqual({
      items: [{ name: "outside", paused: null, types: ["quote"] }],
      next: null,
      pauses: [],
    });
    const paused = await bench.json(["queues", "pause", "outside", "--for", "30m", "--reason", "deploy"]);
    expect(paused).toMatchObject({ code: 0, err: "" });
    const until = expect.stringMatching(ISO);
    expect(paused.document).toEqual({ kind: "queue", name: "outside", paused: true, until });
    expect((await bench.json(["queues", "list"])).document.items).toEqual([
      { name: "outside", paused: { until, reason: "deploy" }, types: ["quote"] },
    ]);
    expect((await bench.run(["queues", "list"])).out).toMatch(
      /^QUEUE +STATE +UNTIL +TYPES +WHY\noutside +paused +in 30m +quote +deploy\n$/,
    );
    expect((await bench.run(["queues", "resume", "outside"])).out).toBe("The queue outside is resumed.\n");
    expect((await bench.run(["queues", "pause", "--tenant", "acme & sons"])).out).toBe(
      "The tenant acme & sons is paused until it is resumed.\n",
    );
    const again = await bench.json(["queues", "resume", "--tenant", "acme & sons"]);
    expect(again).toMatchObject({ code: 0, document: { kind: "tenant", resumed: true } });
  });

  it("are listed with what else is paused, until when and why", async () => {
    const bench = await withJob();
    await bench.run(["queues", "pause", "--tenant", "acme", "--for", "30m", "--reason", "their invoice"]);
    await bench.run(["queues", "pause", "--service", "pricing"]);
    await bench.run(["queues", "pause", "--type", "mail"]);
    await bench.run(["queues", "resume", "--type", "mail"]);
    const since = expect.stringMatching(ISO);
    expect((await bench.json(["queues", "list"])).document).toEqual({
      items: [{ name: "outside", paused: null, types: ["quote"] }],
      next: null,
      pauses: [
        { kind: "service", name: "pricing", since, until: null, reason: "" },
        { kind: "tenant", name: "acme", since, until: since, reason: "their invoice" },
      ],
    });
    expect((await bench.run(["queues", "list"])).out).toMatch(
      /\n\nPAUSED +NAME +UNTIL +WHY\nservice +pricing +resumed *\ntenant +acme +in (30m|29\.\dm) +their invoice\n$/,
    );
    expect((await bench.run(["doctor"])).out).toMatch(
      /paused: .*tenant acme.*\n.*`queues list` shows why and until when/,
    );
  });

  it.each<[string[], number, string]>([
    [["queues", "pause", "outsid"], 0, 'knows a queue "outsid"; did you mean "outside"? It was paused anyway.'],
    [["queues", "pause"], 2, "a queue, --type, --service or --tenant"],
    [["queues", "pause", "outside", "--type", "quote"], 2, "more than one of them"],
    [["queues", "pause", "no name"], 2, "queue: expected 1 to 128 letters"],
    [["queues", "pause", "outside", "--for", "soon"], 2, "for: expected a duration"],
    [["queues"], 2, "expected a command of queues: list, pause, resume; got none"],
  ])("%j ends with %i and says why", async (args, code, text) => {
    const bench = await withJob();
    const outcome = await bench.run(args);
    expect(outcome.code).toBe(code);
    expect(outcome.err).toContain(text);
  });

  it("that were not paused cannot be resumed", async () => {
    const bench = await withJob();
    await bench.run(["queues", "pause", "outside"]);
    const { code, out } = await bench.run(["queues", "resume", "outsid"]);
    expect({ code, out }).toEqual({ code: 1, out: 'The queue outsid was not paused (did you mean "outside"?).\n' });
  });
});

describe("limits, and services and tenants of the config file", () => {
  const CONFIG = `jobs: ./jobs.mjs
services:
  pricing: { rateLimit: { limit: 10, per: 1m }, budget: { share: 0.1 }, ramp: 5s }
tenants:
  acme: { weight: 2 }
`;

  it("are what the config says, and what was taken out of it does not live on", async () => {
    const bench = await withJob();
    expect((await bench.run(["limits"])).out).toBe("No worker has declared a limit.\n");
    bench.write("redrive.config.yaml", CONFIG);
    expect((await bench.run(["drain"])).code).toBe(0);
    const { document } = await bench.json(["limits"]);
    expect(document).toEqual({
      items: [
        {
          kind: "service",
          name: "pricing",
          budget: { share: 0.1, floorPerSecond: 10, capacity: 100, tokens: expect.any(Number) },
          weight: null,
          rate: { limit: 10, perMs: 60_000, burst: 1, left: expect.any(Number), nextAt: expect.stringMatching(ISO) },
        },
        { kind: "tenant", name: "acme", budget: null, weight: 2, rate: null },
      ],
      next: null,
    });
    expect((await bench.run(["limits"])).out).toMatch(
      /^OF +STARTS +NEXT +RETRIES +LEFT +WEIGHT\nservice pricing +10 per 1m +\S.* +10 % and 10 per 1s +\d+\ntenant acme +2\n$/,
    );
    expect((await bench.run(["breakers", "open", "pricing"])).code).toBe(0);
    expect((await bench.run(["breakers", "close", "pricing"])).out).toContain("at full load in 5s");
    bench.write("redrive.config.yaml", "");
    expect((await bench.run(["limits"])).out).toBe("No worker has declared a limit.\n");
  });

  it.each([
    ["services: { pricing: { rateLimt: 5 } }", 'did you mean "rateLimit"?', 1],
    ["services:\n  pricing:\n    whenOpen: explode", "services.pricing.whenOpen: expected park, dead-letter, fail", 3],
    ["tenants:\n  acme:\n    weight: 0", "tenants.acme.weight: expected a number from 0.01 to 100", 3],
    ["services: 5", "services: expected an object", 1],
  ])("%j is refused with its place", async (text, message, line) => {
    const bench = createBench();
    bench.write("redrive.config.yaml", text);
    const { code, err } = await bench.run(["migrate"]);
    expect(code).toBe(78);
    expect(err).toContain(message);
    expect(err).toContain(`redrive.config.yaml line ${line}: `);
  });
});
