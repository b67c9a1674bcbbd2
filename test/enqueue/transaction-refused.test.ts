// What is no transaction is refused, with the reason, before anything is written: a store that has none, nonsense, and
// the classic mistake of passing the database itself, with which the job would stay when the caller rolls back.
import { drizzle } from "drizzle-orm/node-postgres";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { defineJob, type Redrive } from "../../src/index.ts";
import { openQueue } from "../support/postgres-queue.ts";
import { withPg } from "../support/transaction-kinds.ts";
import { KINDS, openRedrive } from "../redrive/kinds.ts";

const SERVER = inject("postgres18");
const note = defineJob("note", { run: (_input: { n: number }) => undefined });

async function refusals(redrive: Redrive, tx: unknown): Promise<string[]> {
  const said: string[] = [];
  const calls = [
    () => redrive.enqueue(note, { n: 1 }, { tx }),
    () => redrive.enqueue(note, { n: 1 }, { tx, key: "k" }),
    () => redrive.enqueueText(note, '{"n":1}', { tx }),
    () => redrive.enqueueMany(note, [{ n: 1 }], { tx }),
  ];
  for (const call of calls) {
    const error = await call().then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ name: "RedriveError", code: "invalid_argument" });
    said.push((error as Error).message);
  }
  expect((await redrive.jobs.count()).queued).toBe(0);
  return said;
}

describe.each(KINDS)("on %s", (kind) => {
  it("refuses every transaction, and names the store that takes them", async () => {
    const redrive = await openRedrive(kind, { jobs: [note] });
    for (const tx of [{ query: () => Promise.resolve({ rows: [] }) }, {}, null])
      for (const message of await refusals(redrive, tx))
        expect(message).toBe(
          `tx: expected a Postgres store, which can share your transaction; got "${kind}"; leave tx out`,
        );
  });

  it("takes no transaction where none is meant", async () => {
    const redrive = await openRedrive(kind, { jobs: [note] });
    await redrive.enqueue(note, { n: 1 }, { tx: undefined });
    expect((await redrive.jobs.count()).queued).toBe(1);
  });
});

describe("on Postgres", () => {
  it.each([
    ["nothing in it", {}],
    ["null", null],
    ["a text", "begin"],
    ["a number", 7],
    ["a function", () => undefined],
    ["an array", []],
    ["a query that is none", { query: "select" }],
  ])("refuses %s", async (_name, tx) => {
    const { redrive } = await openQueue(SERVER, { jobs: [note] });
    for (const message of await refusals(redrive, tx)) expect(message).toMatch(/^tx: expected a client of pg in a/);
  });

  it("refuses a database where a transaction is meant", async () => {
    const { redrive, pool } = await openQueue(SERVER, { jobs: [note] });
    const client = await pool.connect();
    const idle = new pg.Client({ connectionString: SERVER });
    await idle.connect();
    try {
      const kysely = new Kysely<object>({ dialect: new PostgresDialect({ pool }) });
      const databases = [pool, client, idle, drizzle(pool), drizzle(client), kysely];
      for (const tx of databases)
        for (const message of await refusals(redrive, tx)) expect(message).toMatch(/not in a transaction/);
    } finally {
      client.release();
      await idle.end();
    }
  });

  it("refuses a client whose transaction has ended", async () => {
    const { redrive, pool } = await openQueue(SERVER, { jobs: [note] });
    let kept: unknown;
    await withPg(pool, async (tx) => void (kept = tx));
    for (const message of await refusals(redrive, kept)) expect(message).toMatch(/not in a transaction/);
  });

  it("says what a query of one's own should give where it gives something else", async () => {
    const { redrive } = await openQueue(SERVER, { jobs: [note] });
    for (const answer of [[], undefined, { rowCount: 1 }]) {
      const tx = { query: () => Promise.resolve(answer) };
      for (const message of await refusals(redrive, tx))
        expect(message).toMatch(/^tx\.query: expected \{ rows: \[…\] \}/);
    }
  });
});

describe("run", () => {
  it("takes no transaction, because the job could not run before the commit", async () => {
    const queue = await openQueue(SERVER, { jobs: [note] });
    const waiting = withPg(queue.pool, (tx) => queue.redrive.run(note, { n: 1 }, { tx }));
    await expect(waiting).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(/use enqueue/),
    });
    expect((await queue.redrive.jobs.count()).queued).toBe(0);
  });
});
