// SQL for people: the queries that were run on the old systems, word for word but for table names, on a connection of
// their own.
import { describe, expect, it } from "vitest";
import { type Ask, connect, inlineStore, reader } from "../../support/database-file.ts";
import { add, end, finish, start, takeOne } from "../../support/runs.ts";
import { complete, dead, failure, JUDGED_BY, retry } from "../../support/verdicts.ts";

const MINUTE = 60_000;

/** Six jobs after an incident: three dead, one completed at the second try, two waiting for a retry, one fresh. */
async function incident() {
  const { path, store, clock } = await inlineStore();
  const now = clock.now;
  const die = async (type: string, minutesAgo: number, message: string, attempts: number) => {
    clock.now = now - minutesAgo * MINUTE;
    let run = await start(store, { type, maxAttempts: attempts, payload: `{"ago":${minutesAgo}}` });
    for (let tried = 1; tried < attempts; tried++) {
      await end(store, run, retry({ failure: failure({ message }) }));
      run = await takeOne(store, run.id);
    }
    const stack = `Error: ${message}\n    at run (${type}.ts:7:11)`;
    await end(store, run, dead({ failure: failure({ message, stack }) }));
    return run.id;
  };
  const wait = async (key: string, attempts: number, delayMs: number) => {
    const id = await add(store, { type: "record", key });
    for (let tried = 1; tried <= attempts; tried++) {
      const delay = tried === attempts ? delayMs : 0;
      await end(
        store,
        await takeOne(store, id),
        retry({ delayMs: delay, failure: failure({ message: `no ${tried}` }) }),
      );
    }
    return id;
  };
  const old = await die("thumbnail", 120, "no such file", 3);
  const video = await die("video", 30, "unknown codec", 2);
  const recent = await die("thumbnail", 10, "no such file", 3);
  const second = await start(store, { type: "mail" });
  await end(store, second, retry());
  await end(store, await takeOne(store, second.id), complete('{"sent":true}'));
  await wait("record-due", 3, 0);
  clock.now = now;
  await wait("record-late", 1, 60 * MINUTE);
  const fresh = await add(store, { type: "fresh" });
  return { path, store, clock, ask: reader(path), ids: { old, video, recent, second: second.id, fresh } };
}

function columns(ask: Ask, view: string): unknown[] {
  return ask(`select name from pragma_table_info('${view}')`).flat();
}

/** The steps of a query's plan. */
function planOf(ask: Ask, sql: string): string[] {
  return ask(`explain query plan ${sql}`).map((row) => String(row[3]));
}

describe("the views", () => {
  it.each([
    [
      "jobs",
      [
        "id",
        "type",
        "status",
        "attempts",
        "max_attempts",
        "last_error",
        "updated_at",
        "created_at",
        "payload",
        "result",
      ],
    ],
    ["attempts", ["job_id", "attempt", "status", "worker", "started_at", "ended_at", "error_message", "error_stack"]],
    ["dead_letters", ["job_id", "job_type", "status", "attempts", "max_attempts", "last_error"]],
    ["dead_letters", ["error_stacktrace", "input_data", "created_at"]],
    ["item_errors", ["item_id", "run_name", "item", "attempt", "error_message", "error_stack", "created_at"]],
    ["retry_queue", ["record_id", "payload", "error_msg", "retry_count", "process_after"]],
    ["events", ["seq", "created_at", "kind", "actor", "why", "subject", "intent", "value"]],
  ])("%s has the documented columns", async (view, expected) => {
    const { path } = await inlineStore();
    expect(columns(reader(path), view)).toEqual(expect.arrayContaining(expected));
  });

  it("show what operators did, and which outcome belongs to which intent", async () => {
    const { path, store, clock } = await inlineStore();
    clock.now = Date.UTC(2026, 0, 2, 3, 4, 5, 67);
    const about = { kind: "pause", actor: "ada", why: "incident 12", subject: "queue:mail" };
    await store.record([{ ...about, value: '{"step":"intent"}' }]);
    await store.record([{ ...about, intent: 1, value: '{"step":"done"}' }]);
    const [intent, outcome] = reader(path)("SELECT * FROM events ORDER BY seq");
    const shown = ["2026-01-02 03:04:05.067", "pause", "ada", "incident 12", "queue:mail"];
    expect(intent).toEqual([1, ...shown, null, '{"step":"intent"}']);
    expect(outcome).toEqual([2, ...shown, 1, '{"step":"done"}']);
  });

  it("show times in UTC as datetime() writes them, with milliseconds", async () => {
    const { path, store, clock } = await inlineStore();
    clock.now = Date.UTC(2026, 0, 2, 3, 4, 5, 67);
    await finish(store, dead());
    const [row] = reader(path)("SELECT created_at, updated_at, started_at, finished_at, run_at FROM jobs");
    expect(row).toEqual(Array.from({ length: 5 }, () => "2026-01-02 03:04:05.067"));
    expect(reader(path)("SELECT created_at FROM dead_letters")).toEqual([["2026-01-02 03:04:05.067"]]);
  });

  it("show the limits that a run was judged by, where its job was enqueued by name", async () => {
    const { path, store } = await inlineStore();
    await finish(store, dead({ said: JUDGED_BY }), { limited: false });
    expect(reader(path)("SELECT max_attempts FROM dead_letters")).toEqual([[2]]);
    expect(reader(path)("SELECT max_attempts FROM jobs")).toEqual([[2]]);
    expect(reader(path)("SELECT max_retries FROM runs")).toEqual([[1]]);
  });

  it("show a time before 1970 or after 9999 without failing", async () => {
    const { path, store } = await inlineStore();
    await add(store, { runAt: 8_640_000_000_000_000 });
    await add(store);
    connect(path).exec(
      "update job set updated_at = -1, created_at = -9000000000000000 where run_at < 8000000000000000",
    );
    expect(reader(path)("SELECT updated_at FROM jobs WHERE updated_at < '1970'")).toEqual([
      ["1969-12-31 23:59:59.999"],
    ]);
    expect(reader(path)("SELECT COUNT(*) FROM jobs")).toEqual([[2]]);
  });
});

describe("the queries people ran", () => {
  it("attempts per job", async () => {
    const { ask, ids } = await incident();
    const sql = "SELECT id, type, status, attempts, max_attempts FROM jobs WHERE id = ?";
    expect(ask(sql, ids.old)).toEqual([[ids.old, "thumbnail", "failed", 3, 3]]);
    expect(ask(sql, ids.second)).toEqual([[ids.second, expect.any(String), "completed", 1, 10]]);
    const history = "SELECT attempt, status, error_message FROM attempts WHERE job_id = ? ORDER BY attempt";
    expect(ask(history, ids.second)).toEqual([
      [1, "failed", "connection reset"],
      [2, "completed", null],
    ]);
    expect(ask("SELECT job_id, COUNT(*) FROM attempts WHERE job_id = ? GROUP BY job_id", ids.video)).toEqual([
      [ids.video, 2],
    ]);
  });

  it("dead letters newest first, with a limit", async () => {
    const { ask, ids } = await incident();
    const sql = "SELECT job_id, job_type, attempts, last_error FROM dead_letters ORDER BY created_at DESC LIMIT 2";
    expect(ask(sql)).toEqual([
      [ids.recent, "thumbnail", 3, "no such file"],
      [ids.video, "video", 2, "unknown codec"],
    ]);
  });

  it("the stack trace and the input of one", async () => {
    const { ask, ids } = await incident();
    expect(ask("SELECT error_stacktrace, input_data FROM dead_letters WHERE job_id = ?", ids.video)).toEqual([
      ["Error: unknown codec\n    at run (video.ts:7:11)", '{"ago":30}'],
    ]);
    expect(ask("SELECT json_extract(input_data, '$.ago') FROM dead_letters WHERE job_id = ?", ids.video)).toEqual([
      [30],
    ]);
  });

  it("counts by type", async () => {
    const { ask } = await incident();
    expect(ask("SELECT job_type, COUNT(*) FROM dead_letters GROUP BY job_type ORDER BY COUNT(*) DESC")).toEqual([
      ["thumbnail", 2],
      ["video", 1],
    ]);
  });

  it("failures of the last hour", async () => {
    const { ask, ids } = await incident();
    const sql =
      "SELECT job_id FROM dead_letters WHERE created_at > datetime('now', '-1 hour') ORDER BY created_at DESC";
    expect(ask(sql)).toEqual([[ids.recent], [ids.video]]);
    const failed = "SELECT id FROM jobs WHERE status = 'failed' AND updated_at > datetime('now', '-1 hour')";
    expect(new Set(ask(failed).flat())).toEqual(new Set([ids.recent, ids.video]));
  });

  it("jobs by status, and the failed ones", async () => {
    const { ask, ids } = await incident();
    expect(ask("SELECT status, COUNT(*) FROM jobs GROUP BY status ORDER BY status")).toEqual([
      ["completed", 1],
      ["failed", 3],
      ["queued", 1],
      ["retrying", 2],
    ]);
    expect(ask("SELECT id, last_error FROM jobs WHERE status = 'failed' AND type = 'video'")).toEqual([
      [ids.video, "unknown codec"],
    ]);
  });

  it("records with three retries or more, and records that are due", async () => {
    const { ask } = await incident();
    const sql = "SELECT record_id, retry_count, error_msg, payload FROM retry_queue WHERE";
    const due = [["record-due", 3, "no 3", '{"key":"a.mp4"}']];
    expect(ask(`${sql} retry_count >= 3`)).toEqual(due);
    expect(ask(`${sql} process_after <= datetime('now')`)).toEqual(due);
    expect(ask("SELECT record_id FROM retry_queue WHERE process_after > datetime('now', '+50 minutes')")).toEqual([
      ["record-late"],
    ]);
    expect(ask("SELECT COUNT(*), AVG(retry_count) FROM retry_queue")).toEqual([[2, 2]]);
  });

  it("dead letters grouped by error", async () => {
    const { ask } = await incident();
    const sql = "SELECT last_error, COUNT(*) AS n FROM dead_letters GROUP BY last_error ORDER BY n DESC";
    expect(ask(sql)).toEqual([
      ["no such file", 2],
      ["unknown codec", 1],
    ]);
  });

  it("a redriven dead letter stays as history, and its job counts as queued again", async () => {
    const { store, ask, ids } = await incident();
    await store.redrive([{ id: ids.video, generation: 1, delayMs: 0 }]);
    expect(ask("SELECT status, attempts FROM dead_letters WHERE job_id = ?", ids.video)).toEqual([["redriven", 2]]);
    expect(ask("SELECT status, attempts FROM jobs WHERE id = ?", ids.video)).toEqual([["queued", 0]]);
    expect(ask("SELECT COUNT(*) FROM dead_letters WHERE status = 'dead'")).toEqual([[2]]);
  });

  it("the error of an earlier generation is in dead_letters and attempts, not in jobs", async () => {
    const { store, ask, ids } = await incident();
    const error = (): unknown => ask("SELECT last_error FROM jobs WHERE id = ?", ids.video)[0]?.[0];
    const before = error();
    expect(before).not.toBeNull();
    await store.redrive([{ id: ids.video, generation: 1, delayMs: 0 }]);
    expect(error()).toBeNull();
    const run = await takeOne(store, ids.video);
    expect(error()).toBeNull();
    await end(store, run, retry({ failure: failure({ message: "anew" }), charge: { attempts: 0, crashes: 0 } }));
    expect(error()).toBe("anew");
    await end(store, await takeOne(store, ids.video), complete());
    expect(error()).toBe("anew");
    expect(ask("SELECT last_error FROM dead_letters WHERE job_id = ?", ids.video)).toEqual([[before]]);
    const all = ask("SELECT error_message FROM attempts WHERE job_id = ? AND generation = 1", ids.video);
    expect(all.at(-1)).toEqual([before]);
  });

  it("the key and the release that ran are in dead_letters and attempts", async () => {
    const { store, path } = await inlineStore();
    const ask = reader(path);
    const run = await start(store, { key: "order 17" });
    await end(store, run, retry());
    await end(store, await takeOne(store, run.id), dead());
    expect(ask("SELECT key, release FROM attempts WHERE job_id = ?", run.id)).toEqual([
      ["order 17", "1.2.3"],
      ["order 17", "1.2.3"],
    ]);
    expect(ask("SELECT key, release FROM dead_letters")).toEqual([["order 17", "1.2.3"]]);
  });
});

describe("the plans", () => {
  const SORTS = /TEMP B-TREE FOR ORDER BY/;
  // The tables behind the views are called by one letter there; `SCAN attempts` reads what an indexed part found.
  const WHOLE_TABLE = /^SCAN [a-z]$/;

  it.each([
    ["newest first", "SELECT * FROM dead_letters ORDER BY created_at DESC LIMIT 10", /USING INDEX dead_letter_time/],
    [
      "the last hour",
      "SELECT * FROM dead_letters WHERE created_at > datetime('now', '-1 hour')",
      /SEARCH d USING INDEX dead_letter_time/,
    ],
    [
      "the last hour, newest first",
      "SELECT * FROM dead_letters WHERE created_at > datetime('now', '-1 hour') ORDER BY created_at DESC",
      /SEARCH d USING INDEX dead_letter_time/,
    ],
    [
      "one type",
      "SELECT * FROM dead_letters WHERE job_type = 'thumbnail'",
      /SEARCH d USING INDEX dead_letter_type \(type=\?\)/,
    ],
    ["counts by type", "SELECT job_type, COUNT(*) FROM dead_letters GROUP BY job_type", /INDEX dead_letter_type/],
    [
      "the stack trace of one",
      "SELECT error_stacktrace FROM dead_letters WHERE job_id = 'a'",
      /SEARCH j USING .*id=\?/,
    ],
    ["one job", "SELECT attempts, max_attempts FROM jobs WHERE id = 'a'", /SEARCH j USING .*id=\?/],
    ["the attempts of one job", "SELECT * FROM attempts WHERE job_id = 'a'", /SEARCH j USING .*id=\?/],
    ["failed jobs", "SELECT * FROM jobs WHERE status = 'failed'", /SEARCH j USING INDEX job_ended \(state=\?\)/],
    [
      "failed jobs of the last hour",
      "SELECT id FROM jobs WHERE status = 'failed' AND updated_at > datetime('now', '-1 hour')",
      /SEARCH j USING INDEX job_ended \(state=\?\)/,
    ],
    ["cancelled jobs", "SELECT * FROM jobs WHERE status = 'cancelled'", /SEARCH j USING INDEX job_ended \(state=\?\)/],
    ["jobs of a key", "SELECT * FROM jobs WHERE key = 'a'", /SEARCH j USING INDEX job_keyed \(key=\?\)/],
    [
      "records that are due",
      "SELECT * FROM retry_queue WHERE process_after <= datetime('now')",
      /j USING INDEX job_retrying/,
    ],
  ])("%s: an index is used and no table is scanned", async (_name, sql, index) => {
    const { ask } = await incident();
    const steps = planOf(ask, sql);
    expect(steps.join("\n")).toMatch(index);
    expect(steps.filter((step) => WHOLE_TABLE.test(step) || SORTS.test(step))).toEqual([]);
  });
});

describe("odd rows", () => {
  const everything = ["jobs", "attempts", "dead_letters", "retry_queue", "item_errors"].map(
    (view) => `SELECT * FROM ${view}`,
  );

  it("U+0000 and lone surrogates in payloads and errors are shown as text", async () => {
    const { path, store } = await inlineStore();
    const odd = failure({ name: "E\0", message: "a\0b\ud800", stack: "s\0\udfff" });
    const payload = '{"text":"\\u0000\\ud800"}';
    await finish(store, retry({ failure: odd }), { payload });
    await finish(store, dead({ failure: odd }), { payload });
    const ask = reader(path);
    expect(ask("SELECT last_error, error_stacktrace, input_data FROM dead_letters")).toEqual([
      ["a␀b\ufffd", "s␀\ufffd", payload],
    ]);
    expect(ask("SELECT error_msg, payload FROM retry_queue")).toEqual([["a␀b\ufffd", payload]]);
    expect(ask("SELECT DISTINCT last_error FROM jobs")).toEqual([["a␀b\ufffd"]]);
    expect(ask("SELECT DISTINCT error_name, error_message, error_stack FROM attempts")).toEqual([
      ["E␀", "a␀b\ufffd", "s␀\ufffd"],
    ]);
  });

  it("rows damaged by hand do not break a view, and the others stay as they are", async () => {
    const { path, ask, ids } = await incident();
    const before = everything.map((sql) => ask(sql).length);
    const db = connect(path);
    db.exec("pragma ignore_check_constraints = on");
    for (const set of [
      "payload = '{\"cut', failure = '{\"class\":'",
      "payload = char(0) || cast(x'ff' as text), failure = char(0)",
      "lane = 4711",
      "attempts = -1, max_attempts = 0",
      "state = 'lost'",
      "run_at = 9223372036854775807, updated_at = -9223372036854775808",
    ]) {
      expect(db.prepare(`update job set ${set} where id = ?`).run(ids.recent)).toBe(1);
      db.prepare("update dead_letter set failure = '{' where died_at = (select max(died_at) from dead_letter)").run();
      for (const sql of everything) expect(() => ask(sql)).not.toThrow();
      expect(ask("SELECT status, attempts FROM jobs WHERE id = ?", ids.video)).toEqual([["failed", 2]]);
    }
    expect(everything.map((sql) => ask(sql).length)).toEqual(before);
    expect(ask("SELECT COUNT(*) FROM jobs WHERE id = ? AND status = 'lost'", ids.recent)).toEqual([[1]]);
  });
});
