// The SQL function `enqueue`: in the caller's transaction, from triggers, for a role that may do nothing else, beside the
// library where both want one key, and what it says of what it refuses.
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { JOB_BOUNDS, UNIQUE_MODES } from "../../../src/core/new-job.ts";
import { wakeNames } from "../../../src/store/postgres/wake.ts";
import { newJob } from "../../support/new-job.ts";
import { openQueue, type PostgresQueue, testPool } from "../../support/postgres-queue.ts";
import { freshSchema, sql } from "../../support/postgres-world.ts";
import { add, end, enqueuePatiently, read, take, takeOne } from "../../support/runs.ts";
import { complete } from "../../support/verdicts.ts";

const SERVER = inject("postgres18");
const WAIT = { timeout: 20_000, interval: 5 };

/** A connection of the application; what is left open goes with the test. */
async function connection({ pool }: PostgresQueue): Promise<pg.PoolClient> {
  const client = await pool.connect();
  onTestFinished(() => client.release(true));
  return client;
}

/** Runs SQL on a connection; `@` stands for the schema. */
async function on(
  { schema }: PostgresQueue,
  client: pg.ClientBase | pg.Pool,
  text: string,
  values: unknown[] = [],
): Promise<Record<string, unknown>[]> {
  return (await client.query<Record<string, unknown>>(text.replaceAll("@", schema), values)).rows;
}

async function untilItWaits(queue: PostgresQueue, client: pg.PoolClient): Promise<void> {
  const { processID } = client as unknown as { readonly processID: number };
  const waiting = () => queue.sql("select wait_event_type as type from pg_stat_activity where pid = $1", [processID]);
  await expect.poll(waiting, WAIT).toEqual([{ type: "Lock" }]);
}

describe("a job of SQL", () => {
  it("keeps the bytes of its payload, and is due when the caller said", async () => {
    const queue = await openQueue(SERVER);
    const payload = ' {"n": 9007199254740993,\t"file":"a.mp4", "file":"b" } ';
    const [row] = await on(queue, queue.pool, "select * from @.enqueue('thumbnail', $1, key => 'a', delay => '10 s')", [
      payload,
    ]);
    expect(row).toEqual({ id: expect.any(String), duplicate: false, replaced: false, state: "queued" });
    const job = await read(queue.store, row?.["id"] as string);
    expect(job).toMatchObject({
      payload,
      key: "a",
      type: "thumbnail",
      queue: "default",
      limited: false,
      maxAttempts: 10,
    });
    expect(job.runAt - job.createdAt).toBe(10_000);
    const [later] = await on(
      queue,
      queue.pool,
      "select (@.enqueue('x', '1', run_at => '2100-01-01T00:00:00.0001Z')).id",
    );
    expect((await read(queue.store, later?.["id"] as string)).runAt).toBe(Date.UTC(2100, 0, 1) + 1);
  });

  it("is taken by a worker, in the order of enqueue, with the terms it was given", async () => {
    const queue = await openQueue(SERVER);
    const text = `select (@.enqueue('thumbnail', to_json(n), max_attempts => 2, deadline => '1 h', tenant => 'acme', service => 's3')).id
      from generate_series(1, 20) n`;
    const rows = await on(queue, queue.pool, text);
    const runs = await take(queue.store);
    expect(runs.map(({ id }) => id)).toEqual(rows.map(({ id }) => id));
    expect(rows.map(({ id }) => id)).toEqual(rows.map(({ id }) => id as string).toSorted());
    expect(await read(queue.store, runs[0]?.id ?? "")).toMatchObject({
      maxAttempts: 2,
      deadlineMs: 3_600_000,
      limited: true,
      tenant: "acme",
      service: "s3",
    });
  });

  it("is not there if the transaction rolls back, and is counted only if it commits", async () => {
    const queue = await openQueue(SERVER);
    const client = await connection(queue);
    await on(queue, client, "begin");
    await on(queue, client, "select @.enqueue('gone', '1', key => 'k')");
    await on(queue, client, "rollback");
    await on(queue, client, "begin");
    await on(queue, client, "select @.enqueue('kept', '1'), @.enqueue('kept', '2')");
    await on(queue, client, "savepoint a");
    await on(queue, client, "select @.enqueue('kept', '3'), @.enqueue('gone', '3')");
    await on(queue, client, "rollback to savepoint a");
    await on(queue, client, "select @.enqueue('kept', '4')");
    await on(queue, client, "commit");
    await on(queue, client, "select @.enqueue('kept', '5')");
    expect(await queue.store.count()).toMatchObject({ queued: 4 });
    expect(await queue.sql("select type, enqueued::int from @.flow")).toEqual([{ type: "kept", enqueued: 4 }]);
    expect(await queue.sql("select key from @.job_key")).toEqual([]);
  });

  it("costs as much as the first of its transaction, however many came before it", async () => {
    const queue = await openQueue(SERVER);
    const client = await connection(queue);
    const pages = async (): Promise<number> => {
      const [row] = await on(queue, client, "explain (analyze, buffers, format json) select @.enqueue('many', '1')");
      const plans = row?.["QUERY PLAN"] as readonly { readonly Plan: Record<string, number> }[] | undefined;
      return plans?.[0]?.Plan["Shared Hit Blocks"] ?? 0;
    };
    const some = "select count(@.enqueue('many', '1')) from generate_series(1, $1::int)";
    await on(queue, client, "begin");
    await on(queue, client, some, [50]);
    const early = await pages();
    await on(queue, client, some, [1_000]);
    const late = await pages();
    await on(queue, client, "commit");
    // To look for the row of counts would mean to read the pages of all its versions: 16 more.
    expect(late - early).toBeLessThan(8);
    expect(await queue.sql("select enqueued::int as n from @.flow")).toEqual([{ n: 1_052 }]);
  });

  it("comes from a trigger with the row that it is about", async () => {
    const queue = await openQueue(SERVER);
    const table = freshSchema();
    await queue.sql(`create table ${table} (id int, file text);
      create function ${table}_changed() returns trigger language plpgsql as $$ begin
        perform @.enqueue('thumbnail', to_json(new), key => new.file, unique_mode => 'replace');
        return new;
      end $$;
      create trigger changed after insert or update on ${table} for each row execute function ${table}_changed()`);
    onTestFinished(async () => void (await sql(SERVER, `drop table ${table}; drop function ${table}_changed`)));
    await queue.sql(`insert into ${table} values (1, 'a.mp4'), (2, 'b.mp4')`);
    await queue.sql(`update ${table} set id = 3 where file = 'a.mp4'`);
    const payloads = (await take(queue.store)).map(({ payload }) => payload);
    expect(payloads).toEqual(['{"id":3,"file":"a.mp4"}', '{"id":2,"file":"b.mp4"}']);
    await expect(queue.sql(`insert into ${table} values (4, '')`)).rejects.toThrow("key: expected well-formed text");
    expect(await queue.sql(`select count(*)::int as n from ${table}`)).toEqual([{ n: 2 }]);
  });

  it("wakes an idle process once per transaction, with its commit", async () => {
    const queue = await openQueue(SERVER);
    const { idle, channel } = wakeNames(queue.schema);
    const listener = await connection(queue);
    const heard: string[] = [];
    listener.on("notification", (message) => heard.push(message.channel));
    await listener.query(`listen ${channel}; select pg_advisory_lock_shared(${idle})`);
    const client = await connection(queue);
    await on(queue, client, "begin");
    await on(queue, client, "select count(@.enqueue('x', '1')) from generate_series(1, 5)");
    await on(queue, client, "select @.enqueue('x', '2')");
    await listener.query("select 1");
    expect(heard).toEqual([]);
    await on(queue, client, "commit");
    await expect.poll(() => heard, WAIT).toEqual([channel]);
  });

  it("makes its lane, and meets none that a prune retires", async () => {
    const queue = await openQueue(SERVER);
    await on(queue, queue.pool, "select @.enqueue('x', '1', priority => 9, group_key => 'g')");
    const [run] = await take(queue.store);
    expect(run).toMatchObject({ payload: "1" });
    await queue.sql("update @.lane set retired_at = 1, retired_seq = 1");
    await on(queue, queue.pool, "select @.enqueue('x', '2', priority => 9, group_key => 'g')");
    expect(await queue.sql("select retired_at, retired_seq from @.lane")).toEqual([
      { retired_at: null, retired_seq: null },
    ]);
    // While its transaction is open, no prune may retire the lane.
    const client = await connection(queue);
    await on(queue, client, "begin");
    await on(queue, client, "select @.enqueue('x', '3', priority => 9, group_key => 'g')");
    expect(await queue.sql("select base from @.lane for update skip locked")).toEqual([]);
    await on(queue, client, "rollback");
  });
});

describe.each(UNIQUE_MODES)("a key that SQL and the library want at once, %s", (mode) => {
  const met = mode === "replace" || mode === "debounce" ? { replaced: true } : { duplicate: true };

  it("stands for one job, whoever comes first", async () => {
    const queue = await openQueue(SERVER);
    const last = await add(queue.store, { type: "keyed", key: "k", payload: '{"body":2}' });
    await end(queue.store, await takeOne(queue.store, last), complete());
    const [one, two] = [await connection(queue), await connection(queue)];
    await one.query("begin");
    await two.query("begin");
    const [won] = await on(
      queue,
      one,
      "select * from @.enqueue('keyed', '{\"body\":2}', key => 'k', unique_mode => $1)",
      [mode],
    );
    const waited = queue.store
      .within(two)
      .enqueue([newJob({ type: "keyed", key: "k", unique: mode, payload: '{"body":2}' })]);
    await untilItWaits(queue, two);
    await one.query("commit");
    const [second] = await waited;
    const third = on(queue, one, "select * from @.enqueue('keyed', '{\"body\":2}', key => 'k', unique_mode => $1)", [
      mode,
    ]);
    await untilItWaits(queue, one);
    await two.query("commit");
    const holder = mode === "key" ? last : won?.["id"];
    expect(won).toMatchObject({ id: holder, duplicate: mode === "key" });
    expect(second).toMatchObject({ id: holder, kind: "replaced" in met ? "replaced" : "duplicate" });
    expect(await third).toMatchObject([{ id: holder, ...met }]);
    expect(await queue.store.count()).toMatchObject({ queued: mode === "key" ? 0 : 1 });
  });
});

it("one key wanted by many callers of both ways at once is one waiting job", async () => {
  const queue = await openQueue(SERVER);
  const pool = testPool(SERVER, 6);
  const modes = UNIQUE_MODES.filter((mode) => mode !== "key");
  for (let round = 0; round < 12; round++) {
    const unique = modes[round % modes.length] ?? "queued";
    const key = `k${Math.floor(round / modes.length)}`;
    const calls = Array.from({ length: 8 }, (_, at) =>
      at % 2 === 0
        ? enqueuePatiently(queue.store, newJob({ type: "keyed", key, unique, payload: `${at}` }))
        : on(queue, pool, `select @.enqueue('keyed', '${at}', key => $1, unique_mode => $2)`, [key, unique]),
    );
    await Promise.all(calls);
  }
  const rows = await queue.sql("select key, count(*)::int as n from @.job where key is not null group by 1 order by 1");
  expect(rows).toEqual([0, 1, 2].map((n) => ({ key: `k${n}`, n: 1 })));
});

describe("a role that may only enqueue", () => {
  async function producer() {
    const queue = await openQueue(SERVER);
    const role = freshSchema();
    await queue.sql(`create role ${role} login`);
    onTestFinished(async () => void (await sql(SERVER, `drop owned by ${role}; drop role ${role}`)));
    const url = new URL(SERVER);
    url.username = role;
    const client = new pg.Client({ connectionString: url.href });
    await client.connect();
    onTestFinished(() => client.end());
    return { queue, role, client };
  }

  it("needs two rights, and has no other", async () => {
    const { queue, role, client } = await producer();
    await expect(on(queue, client, "select @.enqueue('x', '1')")).rejects.toThrow("permission denied for schema");
    await queue.sql(`grant usage on schema @ to ${role}`);
    await expect(on(queue, client, "select @.enqueue('x', '1')")).rejects.toThrow("permission denied for function");
    await queue.sql(`grant execute on function @.enqueue to ${role}`);
    expect(await on(queue, client, "select duplicate from @.enqueue('x', '1', key => 'k')")).toEqual([
      { duplicate: false },
    ]);
    const relations = await queue.sql(
      "select relname as name, relkind as kind from pg_class where relnamespace = '@'::regnamespace and relkind in ('r', 'v', 'S')",
    );
    expect(relations.length).toBeGreaterThan(20);
    for (const { name, kind } of relations as { name: string; kind: string }[])
      for (const text of kind === "S"
        ? [`select nextval('@.${name}')`]
        : [`select from @.${name}`, `delete from @.${name}`])
        await expect(on(queue, client, text), text).rejects.toThrow(/permission denied|cannot delete from view/);
    for (const text of [
      "create table @.mine ()",
      "drop function @.enqueue",
      "alter function @.enqueue security invoker",
    ])
      await expect(on(queue, client, text), text).rejects.toThrow(/permission denied|must be owner/);
  });

  it("reaches nothing of the owner's by names, settings or tables of its own", async () => {
    const { queue, role, client } = await producer();
    await queue.sql(`grant usage on schema @ to ${role}; grant execute on function @.enqueue to ${role}`);
    await on(
      queue,
      client,
      `create temp table lane (base bigint); create temp table job (id text);
      create function pg_temp.sha256(bytea) returns bytea language sql as 'select pg_sleep(0)::text::bytea';
      create function pg_temp.pg_notify(text, text) returns void language plpgsql as 'begin raise exception ''hijacked''; end';
      set search_path = pg_temp, @`,
    );
    // What the function remembers in settings is checked, not believed.
    const [{ mark } = {}] = await on(queue, client, "select 'redrive.@_' || abs(hashtext('x')::bigint) as mark");
    const evil = `'; update ${queue.schema}.control set version = 99; --`;
    await on(
      queue,
      client,
      "select set_config($1, floor(extract(epoch from now()) / 60)::bigint * 60000 || ' (0,1)', false)",
      [mark],
    );
    const text = "select id from @.enqueue($1, $2, key => $3, tenant => $3, group_key => $3)";
    for (let n = 0; n < 2; n++) await on(queue, client, text, ["x", JSON.stringify(evil), `${evil} ${n}`]);
    await expect(on(queue, client, text, [evil, "1", "k"])).rejects.toThrow("type: expected 1 to 128 letters");
    const said = { payload: JSON.stringify(evil), tenant: `${evil} 1`, group: `${evil} 1`, key: `${evil} 1` };
    expect((await take(queue.store)).at(-1)).toMatchObject(said);
    expect(await queue.sql("select version::int from @.control")).toEqual([{ version: 1 }]);
    expect(await queue.sql("select sum(enqueued)::int as n from @.flow where type = 'x'")).toEqual([{ n: 2 }]);
  });
});

describe("what the function refuses", () => {
  const REFUSED: readonly (readonly [call: string, sqlstate: string, code: string, says: string])[] = [
    ["null, '1'", "22023", "invalid_argument", "type: expected 1 to 128 letters, digits"],
    ["'x', null", "22032", "invalid_payload", "payload: expected JSON; got null; send 'null' for the null of JSON"],
    ["'a b', '1'", "22023", "invalid_argument", 'got "a b"; correct it; nothing was written'],
    [
      "'x', '1', delay => '-1 s'",
      "22023",
      "invalid_argument",
      'delay: expected an interval from 0ms to 3660d; got "-00:00:01"',
    ],
    [
      "'x', '1', delay => '1 s', run_at => now()",
      "22023",
      "invalid_argument",
      'expected delay or run_at; got "both"; give one of them',
    ],
    [
      "'x', '1', run_at => 'infinity'",
      "22023",
      "invalid_argument",
      'run_at: expected a time from 1970 to the year 275760; got "infinity"',
    ],
    ["'x', '1', priority => 10", "22023", "invalid_argument", "priority: expected a whole number from 0 to 9; got 10"],
    [
      "'x', '1', max_attempts => 0",
      "22023",
      "invalid_argument",
      "max_attempts: expected a whole number from 1 to 10000; got 0",
    ],
    [
      "'x', '1', unique_mode => 'replace'",
      "22023",
      "invalid_argument",
      'unique_mode: expected a key; got "replace"; set a key too',
    ],
    [
      "'x', '1', key => 'k', unique_mode => 'often'",
      "22023",
      "invalid_argument",
      "unique_mode: expected one of key, queued, active, replace, debounce",
    ],
    ["'x', '1', id => 'a b'", "22023", "invalid_argument", "id: expected 1 to 64 letters, digits, _ or -"],
    [
      "'x', '1', tenant => repeat('x', 256)",
      "22023",
      "invalid_argument",
      `tenant: expected well-formed text of 1 to ${JOB_BOUNDS.keyBytes} bytes`,
    ],
    ["'x', '1', group_key => ''", "22023", "invalid_argument", "group_key: expected well-formed text"],
    [
      "'x', to_json(repeat('x', 1048576))",
      "54000",
      "payload_too_large",
      `payload may have at most ${JOB_BOUNDS.payloadBytes} bytes; got 1048578.`,
    ],
    ["'x', (repeat('[', 65) || repeat(']', 65))::json", "54000", "payload_too_large", "expected at most 64 levels"],
    [
      "'taken', '2', key => 'k'",
      "23505",
      "conflict",
      'The key "k" of taken is taken by job first, which has another payload.',
    ],
  ];

  it("is said as the library says it, with a code for programs, and writes nothing", async () => {
    const queue = await openQueue(SERVER);
    await on(queue, queue.pool, "select @.enqueue('taken', '1', key => 'k', id => 'first')");
    for (const [call, sqlstate, code, says] of REFUSED) {
      const error = await on(queue, queue.pool, `select @.enqueue(${call})`).catch((thrown: unknown) => thrown);
      expect(error, call).toMatchObject({ code: sqlstate, message: expect.stringContaining(says) });
      expect(JSON.parse((error as { detail: string }).detail), call).toMatchObject({ code });
    }
    await expect(on(queue, queue.pool, "select @.enqueue('x', 'nope')")).rejects.toMatchObject({ code: "22P02" });
    expect(await queue.store.count()).toMatchObject({ queued: 1 });
    expect(await queue.sql("select from @.job_key")).toHaveLength(1);
  });

  it("does not depend on how the session reads backslashes", async () => {
    const queue = await openQueue(SERVER);
    const client = await connection(queue);
    await client.query("set standard_conforming_strings = off; set escape_string_warning = off");
    const brackets = JSON.stringify({ text: '\\"[{'.repeat(80) });
    expect(await on(queue, client, "select duplicate from @.enqueue('x', $1)", [brackets])).toEqual([
      { duplicate: false },
    ]);
    expect((await take(queue.store))[0]).toMatchObject({ payload: brackets });
  });
});
