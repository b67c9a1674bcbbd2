// What no row may say, whoever writes it: SQLite and Postgres refuse the same numbers and words, by hand too.
import { describe, expect, inject, it } from "vitest";
import { connect, inlineStore } from "../support/database-file.ts";
import { newJob } from "../support/new-job.ts";
import { openQueue } from "../support/postgres-queue.ts";

/** The highest and the lowest that a column takes. */
const NUMBERS: Readonly<Record<string, readonly [least: number, most: number]>> = {
  attempts: [0, 1_000_000],
  crashes: [0, 1_000_000],
  releases: [0, 1_000_000_000_000],
  generation: [1, 1_000_000_000],
  epoch: [0, 1_000_000_000_000],
  version: [1, 1_000_000],
  max_attempts: [1, 1_000_000],
  max_crashes: [1, 1_000_000],
};

/** Writes a row of a job; rejects where the store refuses it. */
type Write = (set: string) => Promise<unknown>;

const STORES: readonly (readonly [string, () => Promise<Write>])[] = [
  [
    "SQLite",
    async () => {
      const { path, store } = await inlineStore();
      await store.enqueue([newJob()]);
      const db = connect(path);
      return async (set) => db.exec(`update job set ${set}`);
    },
  ],
  [
    "Postgres",
    async () => {
      const { store, pool, schema } = await openQueue(inject("postgres18"));
      await store.enqueue([newJob()]);
      return (set) => pool.query(`update ${schema}.job set ${set}`);
    },
  ],
];

describe.each(STORES)("%s", (_name, open) => {
  it.each(Object.entries(NUMBERS))("keeps %s within its bounds", async (column, [least, most]) => {
    const write = await open();
    for (const value of [least, most]) await write(`${column} = ${value}`);
    for (const value of [least - 1, most + 1, "null"]) await expect(write(`${column} = ${value}`)).rejects.toThrow();
  });

  it("has no state but those of a job, and none that its times deny", async () => {
    const write = await open();
    await write("state = 'dead', finished_at = 1");
    for (const set of ["state = 'lost'", "finished_at = null", "state = 'queued'", "state = null"])
      await expect(write(set)).rejects.toThrow();
  });
});
