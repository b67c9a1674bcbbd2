// `drain` with records of a query: SQLite and Postgres are only read, and told from each other by nothing else.
import { join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { queryRecords } from "../../src/cli/records-query.ts";
import { storeAddress } from "../../src/config/store-address.ts";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { type Bench, createBench } from "../support/cli.ts";
import { testPool, testSchema } from "../support/postgres-queue.ts";

const JOBS = `
import { defineJob } from "redrive";
export const enrich = defineJob("enrich", { run: ({ name }) => ({ upper: String(name).toUpperCase() }) });
`;
const QUIET = { REDRIVE_LOG: "silent" };

function withJobs(): Bench {
  const bench = createBench();
  bench.write("jobs.mjs", JOBS);
  return bench;
}

describe("drain --query", () => {
  it("takes the rows of a SQLite query and changes nothing there", async () => {
    const bench = withJobs();
    const database = openDatabase(join(bench.folder, "app.db"));
    database.exec("create table customer (id integer, name text); insert into customer values (1, 'ada'), (2, 'bob')");
    database.close();
    const from = ["--from", "sqlite:app.db"];
    const call = ["drain", "--jobs", "jobs.mjs", "--query", "select id, name from customer", ...from];
    expect((await bench.json(call, { env: QUIET })).document).toMatchObject({ records: 2, completed: 2 });
    const sql = "delete from customer returning id";
    const bad = await bench.run(["drain", "--jobs", "jobs.mjs", "--query", sql, ...from], { env: QUIET });
    expect(bad).toMatchObject({ code: 2, err: expect.stringContaining("query: expected one valid SELECT") });
    expect((await bench.json(call, { env: QUIET })).document).toMatchObject({ records: 2, known: 2 });
  });

  it("takes the rows of a Postgres query, page by page", async () => {
    const bench = withJobs();
    const server = inject("postgres18");
    const { schema, url } = testSchema(server);
    const pool = testPool(server);
    await pool.query(`create schema ${schema}; create table ${schema}.customer (id bigint, name text, at timestamptz)`);
    await pool.query(
      `insert into ${schema}.customer select n, 'c' || n, '2027-01-31T08:00:00Z' from generate_series(1, 1200) n`,
    );
    const sql = `select * from ${schema}.customer order by id`;
    const call = ["drain", "--jobs", "jobs.mjs", "--query", sql, "--from", url];
    expect((await bench.json(call, { env: QUIET })).document).toMatchObject({ records: 1_200, completed: 1_200 });
    expect(bench.sql("select payload from jobs order by created_at, id limit 1")).toEqual([
      ['{"id":"1","name":"c1","at":"2027-01-31T08:00:00.000Z"}'],
    ]);
    const bad = ["drain", "--jobs", "jobs.mjs", "--query", `delete from ${schema}.customer`, "--from", url];
    expect(await bench.run(bad, { env: QUIET })).toMatchObject({ code: 2, err: expect.stringContaining("query: ") });
    expect((await pool.query(`select count(*)::int as n from ${schema}.customer`)).rows).toEqual([{ n: 1_200 }]);
  });

  it("holds no snapshot on Postgres while the rows are read, and reads them as they were", async () => {
    const server = inject("postgres18");
    const { schema, url } = testSchema(server);
    const pool = testPool(server);
    await pool.query(`create schema ${schema}; create table ${schema}.customer (id bigint)`);
    await pool.query(`insert into ${schema}.customer select generate_series(1, 1200)`);
    const rows = queryRecords(storeAddress(url, "."), `select id from ${schema}.customer order by id`);
    expect((await rows.next()).value).toEqual({ text: '{"id":"1"}', place: "row 1" });
    await pool.query(`delete from ${schema}.customer`);
    const reader = `select count(*)::int as there, count(xact_start)::int as within, count(backend_xmin)::int as snapshots
      from pg_stat_activity where query = 'fetch 500 from records' and state like 'idle%'`;
    expect((await pool.query(reader)).rows).toEqual([{ there: 1, within: 0, snapshots: 0 }]);
    let count = 1;
    for await (const _ of rows) count += 1;
    expect(count).toBe(1_200);
    const broken = queryRecords(storeAddress(url, "."), "select 1 / (n - 900) as id from generate_series(1, 1000) n");
    await expect(broken.next()).rejects.toThrow(
      "query: expected one valid SELECT; got an error from the database: error: division by zero",
    );
  });

  it("keeps all digits of integers beyond 2^53, as text", async () => {
    const bench = withJobs();
    openDatabase(join(bench.folder, "app.db")).close();
    const call = (sql: string, from: string) =>
      bench.json(["drain", "--jobs", "jobs.mjs", "--query", sql, "--from", from], { env: QUIET });
    const sql = "select 'zz' as id, 9007199254740993 as above, 9007199254740991 as below, 1.5 as part";
    expect((await call(sql, "sqlite:app.db")).document).toMatchObject({ completed: 1 });
    await call("select 9007199254740993 as id union all select 9007199254740992", "sqlite:app.db");
    await call("select 9223372036854775807 as id, 7::bigint as small", inject("postgres18"));
    expect(bench.sql("select key, payload from job order by key")).toEqual([
      ["9007199254740992", '{"id":"9007199254740992"}'],
      ["9007199254740993", '{"id":"9007199254740993"}'],
      ["9223372036854775807", '{"id":"9223372036854775807","small":"7"}'],
      ["zz", '{"id":"zz","above":"9007199254740993","below":9007199254740991,"part":1.5}'],
    ]);
  });

  it("sends Postgres one statement and no more", async () => {
    const bench = withJobs();
    const server = inject("postgres18");
    const { schema, url } = testSchema(server);
    const pool = testPool(server);
    await pool.query(`create schema ${schema}`);
    for (const more of [`commit; create table ${schema}.made (x int)`, `create table ${schema}.made (x int)`]) {
      const sql = `select 77 as id; ${more}`;
      expect(
        await bench.run(["drain", "--jobs", "jobs.mjs", "--query", sql, "--from", url], { env: QUIET }),
      ).toMatchObject({ code: 2, err: expect.stringContaining("query: expected one valid SELECT") });
    }
    expect((await pool.query("select to_regclass($1) as found", [`${schema}.made`])).rows).toEqual([{ found: null }]);
    const last = ["drain", "--jobs", "jobs.mjs", "--query", "select 78 as id;", "--from", url];
    expect((await bench.json(last, { env: QUIET })).document).toMatchObject({ completed: 1 });
  });

  it("ends with exit code 3 where the source goes away, and with no run under way", async () => {
    const bench = createBench();
    const job = `run: () => new Promise((done) => setTimeout(done, 5))`;
    bench.write("jobs.mjs", `import { defineJob } from "redrive"; export const slow = defineJob("slow", { ${job} });`);
    const pool = testPool(inject("postgres18"));
    const drain = (sql: string) =>
      bench.run(["drain", "--jobs", "jobs.mjs", "--query", sql, "--from", inject("postgres18")], { env: QUIET });
    const terminate = async (what: string): Promise<void> => {
      const sql = `select pg_terminate_backend(pid) from pg_stat_activity where query ${what} and pid <> pg_backend_pid()`;
      for (;;) if ((await pool.query(sql)).rowCount === 1) return;
    };
    const gone = {
      code: 3,
      err: expect.stringMatching(/^error: query: the source of the records failed: .*; run the command again/),
    };
    const reading = drain("select g as id from generate_series(1, 40000) g");
    await terminate("= 'fetch 500 from records' and state = 'idle'");
    expect(await reading).toMatchObject(gone);
    expect(bench.sql("select count(*) > 0, sum(state = 'running') from job")).toEqual([[1, 0]]);
    // In the middle of the query itself, too.
    const asking = drain("select 1 as id from pg_sleep(600)");
    await terminate("= 'commit' and wait_event = 'PgSleep'");
    expect(await asking).toMatchObject(gone);
  });
});
