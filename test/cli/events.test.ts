// `events` on the command line, and who and why on every command that changes something.
import { describe, expect, inject, it } from "vitest";
import { createBench, type Document, runCli } from "../support/cli.ts";
import { testSchema } from "../support/postgres-queue.ts";

const ISO = /^\d{4}-\d\d-\d\dT.*Z$/;

const CHANGES = [
  "jobs cancel",
  "jobs retry",
  "jobs reschedule",
  "dlq retry",
  "dlq remove",
  "dlq causes mute",
  "dlq causes unmute",
  "dlq causes fix",
  "dlq causes reopen",
  "dlq causes note",
  "dlq causes own",
  "stuck fix",
  "breakers open",
  "breakers close",
  "breakers reset",
  "queues pause",
  "queues resume",
  "schedules add",
  "schedules pause",
  "schedules resume",
  "schedules run",
  "schedules remove",
];

describe.each<[string, () => readonly string[]]>([
  ["sqlite", () => []],
  ["postgres 18", () => ["--store", testSchema(inject("postgres18")).url]],
])("events on %s", (_name, place) => {
  it("are exactly the rows of the log as JSON, and one line for each action in the table", async () => {
    const bench = createBench();
    const store = place();
    const env = { REDRIVE_ACTOR: " ada " };
    const call = (...args: string[]) => bench.run([...args, ...store], { env });
    await call("schedules", "add", "nightly", "report", "--every", "1h");
    await call("queues", "pause", "mail", "--why", "incident \u001b[31m12\u202e");
    await call("breakers", "open", "pricing", "--reason", "maintenance");
    expect((await call("schedules", "pause", "none", "--why", "typo")).code).not.toBe(0);
    const { document } = await bench.json(["events", "--limit", "4", ...store]);
    const about = { actor: "ada", at: expect.stringMatching(ISO) as string };
    const opened = { ...about, kind: "breaker.open", why: "maintenance", subject: "service:pricing" };
    const failed = { ...about, kind: "schedule.pause", why: "typo", subject: "schedule:none" };
    expect(document).toEqual({
      items: [
        {
          seq: 8,
          ...failed,
          intent: 7,
          value: { step: "failed", error: expect.stringContaining("no schedule") as string },
        },
        { seq: 7, ...failed, intent: null, value: { step: "intent" } },
        { seq: 6, ...opened, intent: 5, value: { step: "done", before: "closed", after: "isolated" } },
        { seq: 5, ...opened, intent: null, value: { step: "intent", reason: "maintenance", forMs: null } },
      ],
      next: "5",
    });
    const rest = await bench.json(["events", "--cursor", "5", ...store]);
    expect(rest.document.items.map(({ kind }: Document) => kind)).toEqual(
      ["pause", "schedule.set"].flatMap((kind) => [kind, kind]),
    );
    const table = (await call("events")).out;
    expect(table.split("\n")[0]).toMatch(/^TIME +KIND +ACTOR +SUBJECT +RESULT +WHY +DETAILS$/);
    expect(table).toMatch(/Z +schedule\.pause +ada +schedule:none +failed +typo /);
    expect(table).toMatch(/Z +pause +ada +queue:mail +done +incident ␛\[31m12�$/m);
    for (const steering of ["\u001b", "\u202e"]) expect(table).not.toContain(steering);
    expect(table.trim().split("\n")).toHaveLength(5);
    // The outcome of 5 is on the page before.
    expect((await call("events", "--cursor", "6", "--limit", "1")).out).toMatch(/breaker\.open .* done /);
  });

  it("are found by kind, actor, subject and time", async () => {
    const bench = createBench();
    const store = place();
    await bench.run(["schedules", "add", "nightly", "report", "--every", "1h", ...store], {
      env: { REDRIVE_ACTOR: "a" },
    });
    await bench.run(["queues", "pause", "mail", ...store], { env: { REDRIVE_ACTOR: "b" } });
    const numbers = async (...args: string[]): Promise<number[]> =>
      (await bench.json(["events", ...args, ...store])).document.items.map(({ seq }: Document) => seq);
    expect(await numbers("--kind", "pause")).toEqual([4, 3]);
    expect(await numbers("--actor", "a")).toEqual([2, 1]);
    expect(await numbers("--subject", "queue:mail")).toEqual([4, 3]);
    for (const ago of ["1h", "1h30m", "1.5h"]) expect(await numbers("--since", ago)).toEqual([4, 3, 2, 1]);
    expect(await numbers("--since", "2100-01-01T00:00:00Z")).toEqual([]);
    expect((await bench.run(["events", "--kind", "none", ...store])).out).toBe("No event matches.\n");
    for (const bad of [
      ["--limit", "0"],
      ["--since", "yesterday"],
      ["--cursor", "x"],
      ["--kind", "a b"],
      ["--subject", ""],
    ])
      expect((await bench.run(["events", ...bad, ...store])).code, bad.join(" ")).toBe(2);
  });
});

describe("who and why", () => {
  it.each(CHANGES)("%s takes --why", async (command) => {
    const { out } = await runCli([...command.split(" "), "--help"], ".");
    expect(out).toContain("--why <text>");
  });

  it("an action without an outcome is unknown", async () => {
    const bench = createBench();
    await bench.run(["migrate"]);
    await bench.run(["queues", "resume", "mail"]);
    bench.sql("delete from event where seq = 2 returning seq");
    const { out } = await bench.run(["events"]);
    expect(out).toMatch(/Z +resume +\S+@\S+ +queue:mail +unknown/);
  });

  it("an action has its outcome where hundreds of events like it are in between", async () => {
    const bench = createBench();
    await bench.run(["migrate"]);
    await bench.run(["queues", "resume", "mail"]);
    bench.sql(`insert into event (at, kind, actor, subject, value)
      with recursive n (i) as (select 1 union all select i + 1 from n where i < 250)
      select e.at, e.kind, e.actor, e.subject, '{"step":"intent"}' from event e, n where e.seq = 1 returning seq`);
    bench.sql("update event set seq = 1000 where seq = 2 returning seq");
    const { out } = await bench.run(["events", "--cursor", "2"]);
    expect(out).toMatch(/Z +resume +\S+@\S+ +queue:mail +done/);
  });

  it("a blank --why or REDRIVE_ACTOR is refused in one line, and nothing is done", async () => {
    const bench = createBench();
    await bench.run(["migrate"]);
    const why = await bench.run(["queues", "pause", "mail", "--why", "   "]);
    expect([why.code, why.out]).toEqual([2, ""]);
    expect(why.err).toMatch(/^error: why: expected [^\n]* not only blanks[^\n]*\n$/);
    const actor = await bench.run(["queues", "pause", "mail"], { env: { REDRIVE_ACTOR: "  " } });
    expect([actor.code, actor.out]).toEqual([78, ""]);
    expect(actor.err).toMatch(/^error: REDRIVE_ACTOR: expected [^\n]* not only blanks[^\n]*\n$/);
    expect(bench.sql("select count(*) from event")).toEqual([[0]]);
  });

  it("a bad REDRIVE_ACTOR is refused before anything is done, and so is a bad --why", async () => {
    const bench = createBench();
    await bench.run(["migrate"]);
    const refused = await bench.run(["queues", "pause", "mail"], { env: { REDRIVE_ACTOR: "x".repeat(256) } });
    expect(refused.code).toBe(78);
    expect(refused.err).toMatch(/^error: REDRIVE_ACTOR: expected well-formed text of 1 to 255 bytes/);
    const long = await bench.run(["queues", "pause", "mail", "--why", "x".repeat(1_001)]);
    expect(long.code).toBe(2);
    expect(long.err).toMatch(/^error: why: expected well-formed text of 1 to 1000 characters/);
    expect(bench.sql("select count(*) from event")).toEqual([[0]]);
    expect(bench.sql("select count(*) from pause")).toEqual([[0]]);
  });

  it.each([
    ["dlq", "retry", "--all"],
    ["dlq", "remove", "--all"],
    ["jobs", "cancel", "--all"],
  ])("%s %s refuses a bad --why before it says or asks anything", async (...command) => {
    const bench = createBench();
    await bench.run(["migrate"]);
    const { out, err, code } = await bench.run([...command, "--why", ""]);
    expect({ out, code }).toEqual({ out: "", code: 2 });
    expect(err).toMatch(/^error: why: expected [^\n]*\n$/);
  });

  it("many jobs retried at once are one pair for the dead and one for the waiting", async () => {
    const bench = createBench();
    const { document } = await bench.json(["enqueue", "t", "-", "--delay", "1h"], { stdin: "{}\n".repeat(250) });
    await bench.run(["jobs", "retry", ...(document.ids as string[]), "--why", "now"]);
    const { document: log } = await bench.json(["events"]);
    expect(log.items).toMatchObject([
      { kind: "jobs.reschedule", why: "now", value: { step: "done", changed: 250 } },
      { kind: "jobs.reschedule", value: { step: "intent", count: 250, delayMs: 0 } },
    ]);
  });
});
