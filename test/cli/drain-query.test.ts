// `drain` with records of a query: SQLite and Postgres are only read, and told from each other by nothing else.
import { join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { queryRecords } from "../../src/cli/records-query.ts";
import { storeAddress } from "../../src/cli/store-address.ts";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { type Bench, createBench } from "../support/cli.ts";
import { testPool, testSchema } from "../support/postgres-queue.ts";

const JOBS = `
import { defineJob } from "redrive";
export const enrich = defineJob("enrich", { run: ({ name }) => ({ upper: String(name).toUpperCase() }) });
`;
const QUIET = { REDRIVE_LOG: "error" };

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
    expect(bad).toMatchObject({ code: 2, err: expect.stringContaining("query: expected one SELECT") });
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
      "query: expected one SELECT that the database understands; it says: error: division by zero",
    );
  });
});
