// `jobs` and `dlq`: looking, and changing what waits or died.
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Bench, createBench, JOBS_TS } from "../support/cli.ts";

interface Lived extends Bench {
  readonly dead: string[];
}

/** Two that completed, three that died, one that is scheduled; lived through once, then copied. */
async function lived(): Promise<Lived> {
  template ??= live();
  const { database, dead } = await template;
  const bench = createBench();
  writeFileSync(join(bench.folder, "redrive.db"), database, { mode: 0o600 });
  return { ...bench, dead };
}

let template: Promise<{ database: Buffer; dead: string[] }> | undefined;

async function live(): Promise<{ database: Buffer; dead: string[] }> {
  const bench = createBench();
  bench.write("jobs.ts", JOBS_TS);
  await bench.run(["enqueue", "hello", "-"], { stdin: '{"name":"Ada","password":"hunter2"}\n{}\n' });
  await bench.run(["enqueue", "broken", "-"], { stdin: "1\n2\n3\n" });
  await bench.run(["enqueue", "hello", "{}", "--delay", "1h", "--key", "later"]);
  expect((await bench.run(["drain", "--jobs", "jobs.ts", "--quiet"])).code).toBe(1);
  const { document } = await bench.json(["dlq", "list"]);
  const dead = document.items.map(({ id }: { id: string }) => id);
  return { database: readFileSync(join(bench.folder, "redrive.db")), dead };
}

describe("dlq causes", () => {
  it("lists what letters died of, as the contract says, in pages", async () => {
    const bench = await lived();
    const { document } = await bench.json(["dlq", "causes"]);
    const [{ failure }] = (await bench.json(["dlq", "list"])).document.items;
    const minute = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:00\.000Z$/);
    expect(Object.keys(document.items[0]).slice(0, 7).join()).toBe(
      "fingerprint,state,dead,firstSeen,lastSeen,types,sample",
    );
    expect(document).toEqual({
      items: [
        expect.objectContaining({
          fingerprint: failure.fingerprint,
          state: "open",
          dead: 3,
          firstSeen: minute,
          lastSeen: minute,
          types: ["broken"],
          releases: [{ release: "", failures: 3 }],
          sample: { name: failure.name, message: failure.message },
        }),
      ],
      next: null,
    });
    const { out } = await bench.run(["dlq", "causes"]);
    expect(out).toContain("CAUSE");
    expect(out).toMatch(new RegExp(`${failure.fingerprint} +open +3 .* broken +${failure.name}`));
    expect((await bench.run(["dlq", "causes", "--limit", "0"])).code).toBe(2);
  });

  it("says so where there is none", async () => {
    const bench = await lived();
    await bench.run(["dlq", "remove", "--all", "--yes"]);
    expect((await bench.run(["dlq", "causes"])).out).toBe("No dead letters.\n");
    expect((await bench.json(["dlq", "causes"])).document).toStrictEqual({ items: [], next: null });
  });
});

describe("jobs list", () => {
  it("gives pages of jobs as the contract says", async () => {
    const bench = await lived();
    const first = await bench.json(["jobs", "list", "--limit", "4"]);
    expect(first.document).toMatchObject({ items: [{}, {}, {}, {}], next: expect.any(String) });
    const second = await bench.json(["jobs", "list", "--limit", "4", "--cursor", first.document.next]);
    expect(second.document).toMatchObject({ items: [{}, {}], next: null });
    const completed = await bench.json(["jobs", "list", "--state", "completed", "--type", "hello"]);
    expect(completed.document.items).toHaveLength(2);
    const scheduled = await bench.json(["jobs", "list", "--state", "scheduled"]);
    expect(scheduled.document.items).toMatchObject([{ key: "later", state: "queued", shown: "scheduled" }]);
    const retrying = await bench.json(["jobs", "list", "--state", "retrying"]);
    expect(retrying.document).toEqual({ items: [], next: null });
  });

  it("is a table that fits the terminal and cannot be steered by what is in it", async () => {
    const bench = createBench();
    bench.write(
      "jobs.mjs",
      `import { defineJob, PermanentError } from "redrive";
       export const evil = defineJob("evil", { run() { throw new PermanentError("\\u001b[2J\\nred 漢字 alert " + "x".repeat(200)); } });`,
    );
    await bench.run(["enqueue", "evil", "{}"]);
    await bench.run(["drain", "--jobs", "jobs.mjs", "--quiet"]);
    for (const columns of [80, 120]) {
      const { out } = await bench.run(["jobs", "list"], { columns, env: { NO_COLOR: "1" } });
      expect(out).toMatch(/^ID +TYPE +STATE +TRIES +WHEN +ERROR\n[0-9a-f-]{36} {2}evil /);
      expect(Math.max(...out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(columns);
      expect(out).not.toContain("\u001b");
    }
    const { out } = await bench.run(["jobs", "list"], { columns: 120 });
    expect(out).toContain("\u001b[31mdead\u001b[39m");
    const log = await bench.run(["jobs", "show", (await bench.json(["jobs", "list"])).document.items[0].id]);
    expect(log.out).toContain("␛[2J");
    expect(log.out).not.toContain("\u001b");
  });

  it.each([
    [["jobs", "list", "--limit", "0"], "limit"],
    [["jobs", "list", "--limit", "many"], "limit"],
    [["jobs", "list", "--state", "asleep"], "queued, running, completed, dead, cancelled, scheduled, retrying"],
    [["jobs", "list", "--cursor", "x"], "cursor"],
    [["jobs", "cancel"], "ids, filters or --all"],
    [["jobs", "cancel", "a", "--all"], "more than one"],
    [["jobs", "reschedule", "a"], "--delay, --run-at or --priority"],
    [["jobs", "retry"], "missing required argument"],
    [["dlq", "list", "--class", "odd"], "transient"],
    [["dlq", "list", "--older-than", "long"], "older-than"],
    [["dlq", "retry"], "ids, filters or --all"],
    [["dlq", "export", "--format", "xml"], "ndjson or csv"],
    [["dlq", "export", "--json", "--format", "csv"], "--output"],
    [["jobs", "explode", "x"], "unknown command"],
  ])("%j is refused with exit 2", async (args, message) => {
    const bench = createBench();
    await bench.run(["migrate"]);
    const { code, out, err } = await bench.run(args);
    expect({ code, out }).toEqual({ code: 2, out: args.includes("--json") ? expect.stringContaining("error") : "" });
    expect(err).toContain(message);
  });
});

describe("a store that is not there", () => {
  it.each([
    [["jobs", "list"]],
    [["jobs", "show", "x"]],
    [["dlq", "list"]],
    [["dlq", "stats"]],
    [["stats"]],
    [["health"]],
  ])("is not made by %j, which says so with exit 3", async (args) => {
    const bench = createBench();
    const { code, err } = await bench.run(args);
    expect(code).toBe(3);
    expect(err).toContain(join(bench.folder, "redrive.db"));
    expect(existsSync(join(bench.folder, "redrive.db"))).toBe(false);
    expect((await bench.json(args)).document).toMatchObject({ error: { code: "store_unavailable" } });
  });
});

describe("jobs show", () => {
  it("shows everything, in sections, with secrets masked", async () => {
    const bench = await lived();
    const { document } = await bench.json(["jobs", "list", "--type", "hello", "--state", "completed"]);
    const ada = document.items.find((job: { payload: { name?: string } }) => job.payload.name === "Ada");
    const { code, out } = await bench.run(["jobs", "show", ada.id]);
    expect(code).toBe(0);
    expect(out).toContain(`hello ${ada.id} completed`);
    expect(out).toContain('"password": "***"');
    expect(out).toContain('"greeting": "hello Ada"');
    const json = await bench.json(["jobs", "show", ada.id]);
    expect(json.document).toMatchObject({ payload: { password: "hunter2" }, result: { mood: "good" }, history: [] });
  });

  it("shows why a job died, and masks connection strings", async () => {
    const bench = await lived();
    const { out } = await bench.run(["dlq", "show", bench.dead[0] as string]);
    expect(out).toContain("PermanentError: no such file postgres://user:***@db/x");
    expect(out).toMatch(/Attempts\n +# +ENDED +TOOK +WORKER +CLASS +THEN +ERROR\n +1 /);
    expect(out).toMatch(/reason +permanent/);
    const { document } = await bench.json(["dlq", "show", bench.dead[0] as string]);
    expect(document).toMatchObject({
      reason: "permanent",
      generation: 1,
      history: [{ attempt: 1, class: "permanent" }],
    });
  });

  it("of a job that succeeded in the end shows that first, and the last error as history", async () => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    const { document } = await bench.json(["enqueue", "flaky", "{}"]);
    await bench.run(["drain", "--jobs", "jobs.ts", "--quiet"]);
    const { out } = await bench.run(["jobs", "show", document.ids[0]]);
    expect(out).toMatch(/^flaky \S+ completed\n {2}completed +\d{4}-/);
    expect(out).not.toMatch(/^Error$/m);
    expect(out).toMatch(/\n {2}2 .* again in 1ms +not yet\n {2}3 +\d{4}-\S+ \S+Z +\S+ +\w+ +- +completed\n/);
    expect(out).toContain("\nLast error, before it succeeded\n  Error: not yet\n");
    expect(out.indexOf("Attempts")).toBeLessThan(out.indexOf("Last error"));
  });

  it("ends with 1 for a job that is not there", async () => {
    const bench = await lived();
    expect(await bench.run(["jobs", "show", "nope"])).toMatchObject({ code: 1, out: "" });
    expect(await bench.run(["dlq", "show", "nope"])).toMatchObject({ code: 1, out: "" });
  });

  it("asks for the whole id where it gets a part of one, and so does what changes jobs", async () => {
    const bench = await lived();
    const [id = ""] = bench.dead;
    const hint = "pass the whole id; `redrive jobs list --json` shows it";
    for (const [args, part] of [
      [["jobs", "show"], id.slice(0, 8)],
      [["dlq", "show"], id.slice(0, 20)],
      [["jobs", "cancel"], id.slice(0, 13)],
      [["jobs", "retry"], id.slice(0, 35)],
      [["jobs", "reschedule", "--delay", "1s"], id.slice(0, 9)],
      [["dlq", "retry"], id.slice(0, 8)],
      [["dlq", "remove", "--yes"], id.slice(0, 8)],
    ] as const)
      expect(await bench.run([...args, part])).toMatchObject({ code: 1, err: expect.stringContaining(hint) });
    for (const none of ["nope", `${id.slice(0, -1)}${id.endsWith("0") ? 1 : 0}`])
      expect((await bench.run(["jobs", "show", none])).err).not.toContain("whole id");
  });
});

describe("jobs cancel, retry and reschedule", () => {
  it("change what waits and say what they could not", async () => {
    const bench = await lived();
    const [id] = (await bench.json(["jobs", "list", "--key", "later"])).document.items.map(
      (job: { id: string }) => job.id,
    );
    const later = await bench.json(["jobs", "reschedule", "--key", "later", "--delay", "2h", "--priority", "9"]);
    expect(later.document).toEqual({ changed: 1, refused: 0, missing: 0 });
    const now = await bench.json(["jobs", "retry", id, bench.dead[0] as string, "nope"]);
    expect(now).toMatchObject({ code: 1, document: { redriven: 1, rescheduled: 1, refused: 0, missing: 1 } });
    expect((await bench.json(["jobs", "show", id])).document).toMatchObject({ shown: "queued", priority: 9 });
    const cancelled = await bench.json(["jobs", "cancel", "--type", "hello", "--yes"]);
    expect(cancelled).toMatchObject({ code: 0, document: { cancelled: 1 } });
    expect(await bench.json(["jobs", "cancel", id])).toMatchObject({ code: 1, document: { finished: 1 } });
    expect(await bench.run(["jobs", "cancel", "--all", "--yes"])).toMatchObject({ code: 0, out: "1 job cancelled\n" });
  });
});

describe("dlq", () => {
  it("lists by filter, in the form of the contract", async () => {
    const bench = await lived();
    const { document } = await bench.json(["dlq", "list", "--type", "broken", "--class", "permanent", "--limit", "2"]);
    expect(document).toMatchObject({ items: [{ type: "broken", reason: "permanent", history: [{}] }, {}] });
    expect(document.next).toEqual(expect.any(String));
    for (const none of [
      ["--type", "hello"],
      ["--older-than", "1h"],
      ["--text", "other"],
      ["--from", "2099-01-01"],
    ])
      expect((await bench.json(["dlq", "list", ...none])).document.items).toEqual([]);
    expect((await bench.run(["dlq", "list", "--text", "NO SUCH"])).out.split("\n")).toHaveLength(5);
  });

  it("counts with bars", async () => {
    const bench = await lived();
    const { out } = await bench.run(["dlq", "stats"], { columns: 80, env: { NO_COLOR: "1" } });
    expect(out).toContain("3 dead letters");
    expect(out).toMatch(/By class\n {2}permanent {2}3 {2}█{24}\n/);
    expect(out).toMatch(/Top causes\n {2}[0-9a-f]{16} {2}e\.g\. PermanentError: no such/);
    await bench.run(["dlq", "retry", ...bench.dead.slice(1)]);
    expect((await bench.run(["dlq", "stats"])).out).toMatch(
      /Top causes\n {2}[0-9a-f]{16} {2}PermanentError: no such file/,
    );
    await bench.run(["drain", "--jobs", bench.write("jobs.ts", JOBS_TS)]);
    const { document } = await bench.json(["dlq", "stats"]);
    expect(document).toMatchObject({
      total: 3,
      byType: { broken: 3 },
      byReason: { permanent: 3 },
      causes: [{ count: 3 }],
    });
  });

  it("sends back by id and by filter", async () => {
    const bench = await lived();
    const one = await bench.json(["dlq", "retry", bench.dead[0] as string]);
    expect(one).toMatchObject({ code: 0, document: { redriven: 1, refused: 0, missing: 0 } });
    expect(await bench.run(["dlq", "retry", bench.dead[0] as string])).toMatchObject({ code: 1 });
    const rest = await bench.run(["dlq", "retry", "--type", "broken", "--delay", "1h"]);
    expect(rest).toMatchObject({ code: 0, out: "2 jobs sent back to work\n" });
    expect(rest.err).toContain("2 dead letters");
    expect((await bench.json(["stats"])).document.jobs).toMatchObject({ queued: 4, dead: 0 });
  });

  it("says plainly that nothing fits, and what may have been meant", async () => {
    const bench = await lived();
    const { document } = await bench.json(["dlq", "stats"]);
    const [{ fingerprint }] = document.causes;
    const none = async (...args: string[]): Promise<string> => {
      const { code, out } = await bench.run(["dlq", ...args]);
      expect(code).toBe(0);
      return out;
    };
    expect(await none("retry", "--type", "brokn", "--class", "network")).toBe(
      'No dead letter matches --type brokn --class network (did you mean "broken"?); nothing was redriven.\n',
    );
    expect(await none("retry", "--fingerprint", fingerprint.slice(0, 8))).toContain(`did you mean "${fingerprint}"?`);
    expect(await none("retry", "--type", "broken", "--older-than", "1h")).toBe(
      "No dead letter matches --type broken --older-than 1h; nothing was redriven.\n",
    );
    expect(await none("remove", "--type", "zzz")).toBe("No dead letter matches --type zzz; nothing was removed.\n");
    const json = await bench.json(["dlq", "retry", "--type", "brokn"]);
    expect(json).toMatchObject({ code: 0, document: { redriven: 0, refused: 0, missing: 0 } });
    await bench.run(["dlq", "remove", "--all", "--yes"]);
    expect(await none("retry", "--all")).toBe("There are no dead letters; nothing was redriven.\n");
  });

  it("removes only with --yes, or when asked and answered", async () => {
    const bench = await lived();
    const refused = await bench.run(["dlq", "remove", "--all"]);
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("--yes") });
    const no = await bench.run(["dlq", "remove", "--all"], { columns: 80, stdin: "\n" });
    expect(no).toMatchObject({ code: 0, out: "Nothing was removed.\n" });
    expect(no.err).toContain("Remove 3 dead letters? [y/N]");
    expect((await bench.json(["stats"])).document.jobs.dead).toBe(3);
    const yes = await bench.run(["dlq", "remove", bench.dead[0] as string], { columns: 80, stdin: "y\n" });
    expect(yes).toMatchObject({ code: 0, out: "1 dead letter removed\n" });
    const all = await bench.json(["dlq", "remove", "--type", "broken", "--yes"]);
    expect(all.document).toEqual({ removed: 2, refused: 0, missing: 0 });
  });

  it("exports to stdout and to a new file that only its owner reads", async () => {
    const bench = await lived();
    const { out } = await bench.run(["dlq", "export"]);
    const lines = out.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).payload)).toEqual([1, 2, 3]);
    const { document } = await bench.json(["dlq", "export"]);
    expect(document).toEqual({ items: lines.map((line) => JSON.parse(line)), next: null });
    const none = await bench.json(["dlq", "export", "--type", "none"]);
    expect(none.document).toEqual({ items: [], next: null });
    const file = await bench.json(["dlq", "export", "--format", "csv", "--output", "dead.csv"]);
    const path = join(bench.folder, "dead.csv");
    expect(file.document).toMatchObject({ file: path, format: "csv" });
    expect(readFileSync(path, "utf8").split("\r\n")).toHaveLength(5);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await bench.run(["dlq", "export", "--output", "dead.csv"])).toMatchObject({ code: 2 });
  });
});
