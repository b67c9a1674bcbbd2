// SQL for people on Postgres: the same views as on SQLite, the queries that were run on the old systems in their Postgres
// form, and indexes that serve them when a hundred thousand finished jobs are kept.
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { createPostgresStore } from "../../../src/store/postgres/index.ts";
import { inlineStore, reader } from "../../support/database-file.ts";
import { newJob } from "../../support/new-job.ts";
import { planOf } from "../../support/postgres-plan.ts";
import { freshSchema, postgresWorld } from "../../support/postgres-world.ts";
import { add, end, finish, start, takeOne } from "../../support/runs.ts";
import { complete, dead, failure, JUDGED_BY, retry } from "../../support/verdicts.ts";

const SERVERS = [inject("postgres18"), inject("postgres15")].filter((url) => url !== null);
const VIEWS = ["jobs", "attempts", "dead_letters", "retry_queue", "runs", "item_errors", "events"];
const MINUTE = 60_000;

/** A store under real time that a test may move, and a connection whose path leads to its schema. */
async function setup(url = inject("postgres18")) {
  const world = await postgresWorld(url, { now: Date.now() });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`set search_path to ${world.schema}`);
  onTestFinished(async () => {
    await client.end();
    await world.close();
  });
  const ask = async (text: string, ...values: unknown[]): Promise<unknown[][]> =>
    (await client.query<unknown[]>({ text, values, rowMode: "array" })).rows;
  return { ...world, client, ask };
}

/** After an incident: three dead, one completed at the second try, two waiting for a retry, one fresh. */
async function incident() {
  const at = await setup();
  const { store, clock } = at;
  const { now } = clock;
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
      const again = { delayMs: tried === attempts ? delayMs : 0, failure: failure({ message: `no ${tried}` }) };
      await end(store, await takeOne(store, id), retry(again));
    }
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
  return { ...at, ids: { old, video, recent, second: second.id, fresh } };
}

describe("the views", () => {
  it.each(SERVERS)("have the names and columns of SQLite, in their order (%#)", async (url) => {
    const { ask, schema } = await setup(url);
    const sqlite = reader((await inlineStore()).path);
    const named = await ask("select table_name::text from information_schema.views where table_schema = $1", schema);
    expect(new Set(named.flat())).toEqual(new Set(VIEWS));
    for (const view of VIEWS) {
      const columns = await ask(
        "select column_name::text from information_schema.columns where table_schema = $1 and table_name = $2 order by ordinal_position",
        schema,
        view,
      );
      expect([view, columns.flat()]).toEqual([view, sqlite(`select name from pragma_table_info('${view}')`).flat()]);
    }
  });

  it("show times as timestamptz, exact to the millisecond", async () => {
    const { ask, store, clock } = await setup();
    clock.now = Date.UTC(2026, 0, 2, 3, 4, 5, 67);
    await finish(store, dead());
    const [row] = await ask("SELECT created_at, updated_at, started_at, finished_at, run_at FROM jobs");
    expect(row).toEqual(Array.from({ length: 5 }, () => new Date(clock.now)));
    expect(await ask("SELECT created_at FROM dead_letters")).toEqual([[new Date(clock.now)]]);
    expect(await ask("SELECT pg_typeof(process_after)::text FROM retry_queue")).toEqual([]);
  });

  it("show the limits that a run was judged by, where its job was enqueued by name", async () => {
    const { ask, store } = await setup();
    await finish(store, dead({ said: JUDGED_BY }), { limited: false });
    expect(await ask("SELECT max_attempts FROM dead_letters")).toEqual([[2]]);
    expect(await ask("SELECT max_attempts FROM jobs")).toEqual([[2]]);
    expect(await ask("SELECT max_retries FROM runs")).toEqual([[1]]);
  });

  it("show a time before 1970 or far ahead without failing", async () => {
    const { ask, store, client } = await setup();
    await add(store, { runAt: 8_640_000_000_000_000 });
    await client.query("update job set updated_at = -1, created_at = -9000000000000");
    expect(await ask("SELECT count(*)::int FROM jobs WHERE updated_at < '1970-01-01 00:00Z'")).toEqual([[1]]);
    expect(await ask("SELECT run_at::text FROM jobs")).toHaveLength(1);
  });
});

describe("the queries people ran", () => {
  it("attempts per job", async () => {
    const { ask, ids } = await incident();
    const sql = "SELECT id, type, status, attempts, max_attempts FROM jobs WHERE id = $1";
    expect(await ask(sql, ids.old)).toEqual([[ids.old, "thumbnail", "failed", 3, 3]]);
    expect(await ask(sql, ids.second)).toEqual([[ids.second, "mail", "completed", 1, 10]]);
    expect(await ask(sql, ids.fresh)).toEqual([[ids.fresh, "fresh", "queued", 0, 10]]);
    const history = "SELECT attempt, status, error_message FROM attempts WHERE job_id = $1 ORDER BY attempt";
    expect(await ask(history, ids.second)).toEqual([
      [1, "failed", "connection reset"],
      [2, "completed", null],
    ]);
  });

  it("dead letters newest first, the stack trace and the input of one, counts by type and error", async () => {
    const { ask, ids } = await incident();
    const newest = "SELECT job_id, job_type, attempts, last_error FROM dead_letters ORDER BY created_at DESC LIMIT 2";
    expect(await ask(newest)).toEqual([
      [ids.recent, "thumbnail", 3, "no such file"],
      [ids.video, "video", 2, "unknown codec"],
    ]);
    const one = "SELECT error_stacktrace, (input_data::jsonb ->> 'ago')::int FROM dead_letters WHERE job_id = $1";
    expect(await ask(one, ids.video)).toEqual([["Error: unknown codec\n    at run (video.ts:7:11)", 30]]);
    const byType = "SELECT job_type, COUNT(*)::int FROM dead_letters GROUP BY job_type ORDER BY COUNT(*) DESC";
    expect(await ask(byType)).toEqual([
      ["thumbnail", 2],
      ["video", 1],
    ]);
    const byError = "SELECT last_error, COUNT(*)::int AS n FROM dead_letters GROUP BY last_error ORDER BY n DESC";
    expect(await ask(byError)).toEqual([
      ["no such file", 2],
      ["unknown codec", 1],
    ]);
  });

  it("failures of the last hour, and jobs by status", async () => {
    const { ask, ids } = await incident();
    const sql = "SELECT job_id FROM dead_letters WHERE created_at > NOW() - INTERVAL '1 hour' ORDER BY created_at DESC";
    expect(await ask(sql)).toEqual([[ids.recent], [ids.video]]);
    const failed = "SELECT id FROM jobs WHERE status = 'failed' AND updated_at > NOW() - INTERVAL '1 hour'";
    expect(new Set((await ask(failed)).flat())).toEqual(new Set([ids.recent, ids.video]));
    expect(await ask("SELECT status, COUNT(*)::int FROM jobs GROUP BY status ORDER BY status")).toEqual([
      ["completed", 1],
      ["failed", 3],
      ["queued", 1],
      ["retrying", 2],
    ]);
  });

  it("records with three retries or more, and records that are due", async () => {
    const { ask } = await incident();
    const sql = "SELECT record_id, retry_count, error_msg, payload FROM retry_queue WHERE";
    const due = [["record-due", 3, "no 3", '{"key":"a.mp4"}']];
    expect(await ask(`${sql} retry_count >= 3`)).toEqual(due);
    expect(await ask(`${sql} process_after <= NOW()`)).toEqual(due);
    expect(await ask("SELECT record_id FROM retry_queue WHERE process_after > NOW() + INTERVAL '50 minutes'")).toEqual([
      ["record-late"],
    ]);
  });

  it("a redriven dead letter stays as history, and its job counts as queued again", async () => {
    const { store, ask, ids } = await incident();
    await store.redrive([{ id: ids.video, generation: 1, delayMs: 0 }]);
    expect(await ask("SELECT status, attempts FROM dead_letters WHERE job_id = $1", ids.video)).toEqual([
      ["redriven", 2],
    ]);
    expect(await ask("SELECT status, attempts FROM jobs WHERE id = $1", ids.video)).toEqual([["queued", 0]]);
  });

  it("the error of an earlier generation is in dead_letters and attempts, not in jobs", async () => {
    const { store, ask, ids } = await incident();
    const error = async (): Promise<unknown> =>
      (await ask("SELECT last_error FROM jobs WHERE id = $1", ids.video))[0]?.[0];
    const before = await error();
    expect(before).not.toBeNull();
    await store.redrive([{ id: ids.video, generation: 1, delayMs: 0 }]);
    expect(await error()).toBeNull();
    const run = await takeOne(store, ids.video);
    expect(await error()).toBeNull();
    await end(store, run, retry({ failure: failure({ message: "anew" }), charge: { attempts: 0, crashes: 0 } }));
    expect(await error()).toBe("anew");
    await end(store, await takeOne(store, ids.video), complete());
    expect(await error()).toBe("anew");
    expect(await ask("SELECT last_error FROM dead_letters WHERE job_id = $1", ids.video)).toEqual([[before]]);
    const all = await ask("SELECT error_message FROM attempts WHERE job_id = $1 AND generation = 1", ids.video);
    expect(all.at(-1)).toEqual([before]);
  });

  it("the key and the release that ran are in dead_letters and attempts", async () => {
    const { store, ask } = await setup();
    const run = await start(store, { key: "order 17" });
    await end(store, run, retry());
    await end(store, await takeOne(store, run.id), dead());
    expect(await ask("SELECT key, release FROM attempts WHERE job_id = $1", run.id)).toEqual([
      ["order 17", "1.2.3"],
      ["order 17", "1.2.3"],
    ]);
    expect(await ask("SELECT key, release FROM dead_letters")).toEqual([["order 17", "1.2.3"]]);
  });
});

describe("odd rows", () => {
  it.each(SERVERS)("U+0000 and lone surrogates in payloads and errors are shown as text (%#)", async (url) => {
    const { store, ask } = await setup(url);
    const odd = failure({ name: "E\0", message: "a\0b\ud800", stack: "s\0\udfff" });
    const payload = '{"text":"\\u0000\\ud800"}';
    await finish(store, retry({ failure: odd }), { payload });
    await finish(store, dead({ failure: odd }), { payload });
    expect(await ask("SELECT last_error, error_stacktrace, input_data FROM dead_letters")).toEqual([
      ["a␀b\ufffd", "s␀\ufffd", payload],
    ]);
    expect(await ask("SELECT error_msg, payload FROM retry_queue")).toEqual([["a␀b\ufffd", payload]]);
    expect(await ask("SELECT DISTINCT last_error FROM jobs")).toEqual([["a␀b\ufffd"]]);
    expect(await ask("SELECT DISTINCT error_name, error_message, error_stack FROM attempts")).toEqual([
      ["E␀", "a␀b\ufffd", "s␀\ufffd"],
    ]);
  });

  it("rows damaged by hand do not break a view", async () => {
    const { ask, client, ids } = await incident();
    const [no, never] = [-9_000_000_000_000_000_000n, 9_223_372_036_854_775_807n];
    await client.query(`update attempt set started_at = ${no}, delay_ms = ${never}, ended_at = ${never}`);
    await client.query(`update dead_letter set redriven_at = ${no}, died_at = ${never} where seq = 1`);
    await client.query(`insert into event (seq, at, kind, value) values (1, ${no}, 'pause', '{')`);
    for (const set of [
      "payload = '{\"cut', failure = '{\"class\":'",
      "lane = 4711",
      "run_at = -5, updated_at = -5",
      `run_at = ${never}, created_at = ${no}, updated_at = ${never}, started_at = ${no}, finished_at = ${never}`,
    ]) {
      expect((await client.query(`update job set ${set} where id = $1`, [ids.recent])).rowCount).toBe(1);
      await client.query("update dead_letter set failure = '{'");
      // No job of the incident is an item of a batch.
      for (const view of VIEWS)
        expect((await ask(`SELECT * FROM ${view}`)).length > 0, view).toBe(view !== "item_errors");
      expect(await ask("SELECT status, attempts FROM jobs WHERE id = $1", ids.recent)).toEqual([["failed", 3]]);
    }
  });
});

describe("with a hundred thousand finished jobs", () => {
  const s = freshSchema();
  const client = new pg.Client({ connectionString: inject("postgres18") });
  const MANY = 100_000;

  beforeAll(async () => {
    await client.connect();
    const store = createPostgresStore({ url: inject("postgres18"), schema: s });
    await store.enqueue([newJob()]);
    await finish(store, dead());
    await finish(store, retry({ delayMs: MINUTE }), { key: "a" });
    await store.close();
    await client.query(`set search_path to ${s}`);
    const body = "1, 1, 1, 1, 10, 3, 1, '{}'";
    const columns = "run_at, due_at, created_at, updated_at, max_attempts, max_crashes, version, payload";
    const lane = "(select min(base) from lane)";
    await client.query(
      `insert into job (id, lane, state, finished_at, attempts, ${columns}) select 'c' || n, ${lane}, 'completed', 1, 0, ${body} from generate_series(1, ${MANY}) n`,
    );
    await client.query(
      `insert into job (id, lane, state, finished_at, attempts, ${columns}) select 'd' || n, ${lane}, 'dead', 1, 3, ${body} from generate_series(1, 500) n`,
    );
    await client.query(
      `insert into dead_letter (job_seq, generation, type, reason, error_class, fingerprint, attempts, crashes, max_attempts, died_at, error_name, error_message, failure)
       select seq, 1, 'thumbnail', 'exhausted', 'transient', 'f', 3, 0, 3, seq * 1000, 'Error', 'no', '{}' from job where id like 'd%'`,
    );
    await client.query(
      `insert into attempt (job_seq, generation, epoch, attempt, ended_at, error_class, error_name, error_message, failure)
       select seq, 1, e, e, seq * 1000, 'transient', 'Error', 'no', '{}' from job, generate_series(1, 3) e where id like 'd%'`,
    );
    await client.query(
      `insert into waiting (lane, run_at, seq, job_id) select lane + 1, 9999999999999 + seq, seq, id from job where id like 'c%' limit 50000`,
    );
    await client.query("analyze job, dead_letter, attempt, waiting, lane");
  });
  afterAll(async () => {
    await client.query(`drop schema ${s} cascade`);
    await client.end();
  });

  const BIG = ["job", "attempt", "waiting", "dead_letter"];

  it.each([
    ["newest first", "SELECT * FROM dead_letters ORDER BY created_at DESC LIMIT 10", "dead_letter_time"],
    [
      "the last hour",
      "SELECT * FROM dead_letters WHERE created_at > NOW() - INTERVAL '1 hour' ORDER BY created_at DESC",
      "dead_letter_time",
    ],
    ["the stack trace of one", "SELECT error_stacktrace FROM dead_letters WHERE job_id = 'd7'", "job_id_key"],
    ["one job", "SELECT status, attempts, max_attempts FROM jobs WHERE id = 'c7'", "job_id_key"],
    ["the attempts of one job", "SELECT * FROM attempts WHERE job_id = 'd7'", "job_id_key"],
    [
      "failed jobs of the last hour",
      "SELECT id FROM jobs WHERE status = 'failed' AND updated_at > NOW() - INTERVAL '1 hour'",
      "job_pkey",
    ],
    ["records that are due", "SELECT * FROM retry_queue WHERE process_after <= NOW()", "waiting_retries"],
    [
      "retries by due time",
      "SELECT * FROM runs WHERE status = 'pending_retry' ORDER BY next_retry_at LIMIT 50",
      "waiting_retries",
    ],
    ["the retry of one job", "SELECT * FROM runs WHERE job_id = 'c7' AND status = 'pending_retry'", "waiting_retry"],
    ["jobs of a key", "SELECT * FROM jobs WHERE key = 'a'", "job_keyed"],
  ])("%s: finds what it shows by an index", async (name, query, index) => {
    const steps = await planOf(client, query);
    const used = steps.map((step) => step["Index Name"]);
    const read = steps.filter((step) => step["Node Type"] === "Seq Scan").map((step) => step["Relation Name"] ?? "");
    // All dead letters may be read for failed jobs; they are few, and the jobs are found from them.
    const few = name.startsWith("failed jobs") ? ["dead_letter"] : [];
    expect(read.filter((table) => BIG.includes(table) && !few.includes(table))).toEqual([]);
    expect(used).toContain(index);
  });
});
