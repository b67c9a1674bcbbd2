// `dlq causes` on the command line: the table, one cause, and what people say of it.
import { describe, expect, inject, it } from "vitest";
import { type Bench, createBench, JOBS_TS } from "../support/cli.ts";
import { testSchema } from "../support/postgres-queue.ts";

/** A store with three dead letters of one cause; answers its fingerprint. */
async function incident(place: readonly string[]): Promise<{ readonly bench: Bench; readonly cause: string }> {
  const bench = createBench();
  bench.write("jobs.ts", JOBS_TS);
  await bench.run(["enqueue", "broken", "-", "--tenant", "acme", ...place], { stdin: "1\n2\n3\n" });
  await bench.run(["drain", "--jobs", "jobs.ts", "--quiet", "--release", "1.4.1", ...place]);
  const { document } = await bench.json(["dlq", "causes", ...place]);
  return { bench, cause: document.items[0].fingerprint };
}

/** A busy machine may take seconds for a call. */
const AGO = "(?:just now|[\\d.]+s ago)";

describe.each<[string, () => readonly string[]]>([
  ["sqlite", () => []],
  ["postgres 18", () => ["--store", testSchema(inject("postgres18")).url]],
])("dlq causes on %s", (_name, open) => {
  it("are muted, fixed, reopened, noted and owned, and the list and the event log say so", async () => {
    const place = open();
    const { bench, cause } = await incident(place);
    const env = { REDRIVE_ACTOR: "ada" };
    const call = (...args: string[]) => bench.run(["dlq", "causes", ...args, ...place], { env });
    expect((await call("mute", cause, "--for", "2h", "--more", "5", "--why", "known")).out).toMatch(
      new RegExp(`^Cause ${cause} is muted: ada muted it ${AGO}, for .* more or until 5 more died\\.\n$`),
    );
    expect((await call("unmute", cause)).out).toMatch(new RegExp(`is open: ada opened it ${AGO}\\.$`, "m"));
    expect((await call("own", cause, "payments")).out).toMatch(/is open: .* Owner: payments\.$/m);
    expect((await call("note", cause, "see INC-7")).out).toMatch(/Owner: payments\. Note: see INC-7$/m);
    expect((await call("fix", cause, "--in", "1.4.2")).out).toMatch(
      new RegExp(`is fixed: ada marked it fixed in 1\\.4\\.2 ${AGO}`),
    );
    const list = await call();
    expect(list.out).toMatch(new RegExp(`^${cause} +fixed +3 +[▁-█]{6} `, "m"));
    expect(list.err).toContain("1 cause, 3 letters.");
    expect(list.err).not.toContain("Next:");
    expect((await call("reopen", cause)).out).toMatch(/is open/);
    expect((await call()).err).toMatch(new RegExp(`1 cause, 3 letters\\. Next: redrive plan --cause ${cause}`));
    expect((await call("note", cause, "")).out).not.toContain("Note:");
    const { document } = await bench.json(["dlq", "causes", "show", cause, ...place]);
    expect(document).toMatchObject({
      fingerprint: cause,
      state: "open",
      dead: 3,
      releases: [{ release: "1.4.1", failures: 3 }],
      owner: "payments",
      note: null,
      letters: { looked: 3, tenants: [{ name: "acme", count: 3 }] },
    });
    const shown = (await call("show", cause)).out;
    for (const line of [/^ +tenants +acme 3$/m, /^ +releases +1\.4\.1 3$/m, /^ +dead +3 of 3 deaths, 3 failed runs$/m])
      expect(shown).toMatch(line);
    const events = (await bench.json(["events", "--actor", "ada", ...place])).document.items;
    expect(events.map(({ kind }: { kind: string }) => kind)).toEqual(
      ["noted", "reopened", "fixed", "noted", "noted", "unmuted", "muted"].flatMap((k) => [`cause.${k}`, `cause.${k}`]),
    );
    const opened = (await bench.json(["events", "--kind", "cause.opened", ...place])).document.items;
    expect(opened).toMatchObject([{ actor: null, subject: `cause:${cause}`, value: { types: ["broken"] } }]);
  });

  it("refuse what makes no sense in one line, and write nothing", async () => {
    const place = open();
    const { bench, cause } = await incident(place);
    const events = async () => (await bench.json(["events", ...place])).document.items.length;
    const before = await events();
    for (const [code, args, says] of [
      [1, ["show", "nothere"], /There is no cause "nothere"/],
      [1, ["mute", "nothere", "--for", "1h"], /There is no cause/],
      [2, ["mute", cause], /expected for, more or both/],
      [2, ["mute", cause, "--for", "soon"], /for: expected a duration/],
      [2, ["mute", cause, "--more", "-1"], /more: expected/],
      [2, ["mute", cause, "--more", "many"], /more: expected/],
      [2, ["fix", cause, "--in", ""], /in: expected/],
      [2, ["note", cause, "x".repeat(1_001)], /note: expected/],
      [2, ["note", cause], /missing required argument/],
      [2, ["show"], /missing required argument/],
      [4, ["unmute", cause], /it is not muted: it is open/],
      [4, ["reopen", cause], /neither fixed nor regressed/],
    ] as const) {
      const { code: came, out, err } = await bench.run(["dlq", "causes", ...args, ...place]);
      expect([came, out], args.join(" ")).toEqual([code, ""]);
      expect(err.trim().split("\n"), err).toHaveLength(1);
      expect(err).toMatch(says);
    }
    expect(await events()).toBe(before);
  });
});

describe("dlq causes on a terminal", () => {
  it("fits 80 and 120 columns, and says who broke a fix", async () => {
    const { bench, cause } = await incident([]);
    await bench.run(["dlq", "causes", "fix", cause, "--in", "1.4.2"]);
    for (const release of ["1.4.2", "1.4.2"]) {
      await bench.run(["enqueue", "broken", "4"]);
      await bench.run(["drain", "--jobs", "jobs.ts", "--quiet", "--release", release]);
    }
    const wide = (await bench.run(["dlq", "causes"])).out;
    expect(wide).toMatch(new RegExp(`^${cause} +regressed +5 .*\\(fixed in 1\\.4\\.2, back in 1\\.4\\.2\\)$`, "m"));
    for (const columns of [80, 120]) {
      const { out } = await bench.run(["dlq", "causes"], { columns, env: { NO_COLOR: "1" } });
      for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(columns);
      expect(out).toMatch(/^CAUSE +STATE +DEAD +1H .*LAST +TYPES +WHAT/);
    }
  });
});

describe("dlq triage", () => {
  it("advises for each cause, with the reason and the next command, as table and as JSON", async () => {
    const { bench, cause } = await incident([]);
    const { document } = await bench.json(["dlq", "triage"]);
    const advised = { fingerprint: cause, advice: "unknown", dead: 3, command: `redrive dlq causes show ${cause}` };
    expect(document).toMatchObject({ items: [{ ...advised, reason: expect.stringContaining("1.4.1") as string }] });
    expect((await bench.json(["dlq", "triage", "--cause", cause])).document.items).toHaveLength(1);
    expect((await bench.run(["dlq", "triage", "--cause", "nothere"])).code).toBe(1);
    for (const columns of [80, 120]) {
      const { out } = await bench.run(["dlq", "triage"], { columns, env: { NO_COLOR: "1" } });
      for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(columns);
      expect(out).toMatch(
        new RegExp(`^${cause} +3 .*unknown +the newest .*\\n  redrive dlq causes show ${cause}$`, "m"),
      );
    }
  });
});
