// What the server's errors say to whoever reads them: what happened, and what to do.
import type pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { translate } from "../../../src/store/postgres/errors.ts";
import { openQueue } from "../../support/postgres-queue.ts";
import { withPg } from "../../support/transaction-kinds.ts";

const SERVER = inject("postgres18");
const Unavailable = (message: RegExp): object => ({
  code: "store_unavailable",
  message: expect.stringMatching(message) as string,
});

describe("a transaction of the caller's", () => {
  it("that has failed before is said to have, not the server", async () => {
    const { redrive, pool } = await openQueue(SERVER);
    const failed = withPg(pool, async (tx) => {
      await (tx as pg.PoolClient).query("select 1 / 0").catch(() => undefined);
      await redrive.enqueue("work", 1, { tx });
    });
    await expect(failed).rejects.toMatchObject(Unavailable(/^The transaction had already failed: .*Roll it back/));
  });

  it("that only reads is said to", async () => {
    const { redrive, pool } = await openQueue(SERVER);
    const reading = withPg(pool, async (tx) => {
      await (tx as pg.PoolClient).query("set transaction read only");
      await redrive.enqueue("work", 1, { tx });
    });
    await expect(reading).rejects.toMatchObject(Unavailable(/is read-only: .*without READ ONLY.*the primary/));
  });

  it("that meets another one crosswise is to be run again", async () => {
    const { redrive, pool } = await openQueue(SERVER);
    for (const key of ["a", "b"]) await redrive.enqueue("work", 1, { key });
    let ready = 0;
    const crosswise = (keys: readonly string[]): Promise<void> =>
      withPg(pool, async (tx) => {
        await redrive.enqueue("work", 1, { key: keys[0] as string, tx });
        ready += 1;
        await expect.poll(() => ready).toBe(2);
        await redrive.enqueue("work", 1, { key: keys[1] as string, tx });
      });
    const ends = await Promise.allSettled([crosswise(["a", "b"]), crosswise(["b", "a"])]);
    const reasons = ends.flatMap((end) => (end.status === "rejected" ? [end.reason as unknown] : []));
    expect(reasons).toMatchObject([Unavailable(/deadlock detected.*run your transaction again/)]);
  });
});

describe("a value that cannot be stored", () => {
  const refusal = (code: string, message: string): unknown =>
    translate(Object.assign(new Error(message), { code }), "here");

  it.each(["22021", "22P02", "22P05"])("is to be text without U+0000 where that is why: %s", (code) => {
    const message = "Postgres cannot store a value: why. Send well-formed text without U+0000; nothing was changed.";
    expect(refusal(code, "why")).toMatchObject({ code: "invalid_argument", message });
  });

  it("is to be another one where it does not fit", () => {
    const message = "Postgres cannot store a value: integer out of range. Send one that fits; nothing was changed.";
    expect(refusal("22003", "integer out of range")).toMatchObject({ code: "invalid_argument", message });
  });
});
