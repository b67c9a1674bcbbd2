// A repair and a redrive of one job at the same moment, stepped by hand: another operator's transaction holds the job, the
// repair waits for it on the server, the transaction commits. The repair must see what it wrote.
import { expect, inject, it } from "vitest";
import { payloadHash } from "../../../src/store/payloads.ts";
import { storeBeside } from "../../support/postgres-world.ts";
import { finish, read } from "../../support/runs.ts";
import { dead } from "../../support/verdicts.ts";

const WAIT = { timeout: 20_000, interval: 5 };

it("a repair that waits for a redrive is refused once the redrive has committed", async () => {
  const { store, client, s } = await storeBeside(inject("postgres18"));
  const job = await finish(store, dead());
  await client.query("begin");
  // As far as a repair is concerned, a redrive does this.
  await client.query(`update ${s}.job set generation = generation + 1 where id = $1`, [job.id]);
  const { id, generation, payload } = job;
  const repair = store.repair([{ id, generation, was: payloadHash(payload), payload: '"new"', actor: "a", why: null }]);
  const waiting = async (): Promise<unknown> =>
    (await client.query("select count(*)::int as n from pg_locks where not granted")).rows[0].n;
  await expect.poll(waiting, WAIT).toBeGreaterThan(0);
  await client.query("commit");
  expect(await repair).toEqual(["refused"]);
  expect(await read(store, id)).toMatchObject({ payload, generation: generation + 1 });
  expect(await store.payloads(id)).toEqual([]);
});
