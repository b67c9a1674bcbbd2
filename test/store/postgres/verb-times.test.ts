// The time that a verb of several statements answers with, on a clock that ticks with every statement: nothing it did
// counts from before a settle's, and nothing it took was due after a claim's.
import { expect, inject, it, onTestFinished } from "vitest";
import { createPostgresStore } from "../../../src/store/postgres/index.ts";
import { newJob } from "../../support/new-job.ts";
import { freshSchema, sql } from "../../support/postgres-world.ts";

const SERVER = inject("postgres18");
const LEASE = { worker: "w", control: 1, startedThrough: 0, ticket: 1 };

it("is that of the last part of a claim, and of the first of a settle", async () => {
  const schema = freshSchema();
  let time = 1_000_000;
  const store = createPostgresStore({ url: SERVER, schema }, { clock: () => (time += 10) });
  onTestFinished(async () => {
    await store.close();
    await sql(SERVER, `drop schema ${schema} cascade`);
  });
  await store.register({ id: "w", pid: 1, host: "here", release: null, leaseMs: 60_000 });
  await store.enqueue([newJob(), newJob()]);
  const lane = (await store.lanes(null, 10)).lanes[0]?.lane as number;
  const part = { lane, limit: 1 };
  // A lane that is named twice is taken from twice.
  const claimed = await store.claim({ ...LEASE, quotas: [part, part], limit: 2, nonce: "n".repeat(32) });
  const [first, second] = claimed.jobs;
  if (!first || !second) throw new Error(`Two jobs were to be claimed; got ${claimed.jobs.length}.`);
  expect(second.startedAt).toBeGreaterThan(first.startedAt as number);
  expect(claimed.now).toBe(second.startedAt);
  const { now } = await store.settle({
    worker: "w",
    settlements: [
      { id: first.id, epoch: 1, nonce: first.nonce, verdict: { kind: "release", reason: "snooze", delayMs: 500 } },
      { id: second.id, epoch: 1, nonce: second.nonce, verdict: { kind: "complete", result: null } },
    ],
  });
  const [released] = await store.get([first.id]);
  expect(released?.runAt).toBe(now + 500);
});
