// What the stored fixtures of the schema hold: jobs in every state, dead letters, keys of every mode, a group with a place
// held, schedules, pauses, an open breaker, a `redrive batch` half done, and from version 2 on a redrive run in its canary, a
// cause with a record and a repaired payload. Filled in through the library, on a clock that begins at the same instant each
// time, with dice that follow from a seed.

import { fixed } from "../dist/core/backoff.js";
import { PermanentError } from "../dist/core/errors.js";
import { defineJob } from "../dist/jobs/define-job.js";
import { done, transient } from "../dist/core/item-outcome.js";
import { batchJob, enqueueItems } from "../dist/batch-command/batch-run.js";
import { beginRun, changeRun } from "../dist/batch-command/batch-state.js";
import { assemble } from "../dist/redrive.js";
import { realSystem } from "../dist/system/real.js";
import { fakeSystem, seededDice } from "../dist/testing/fake-system.js";

const MINUTE = 60_000;

/** A clock that begins in 2026, goes on by itself, and can be moved ahead. */
export function startClock() {
  const began = realSystem.monotonic();
  let ahead = Date.UTC(2026, 0, 1, 12);
  return {
    get now() {
      return ahead + Math.floor(realSystem.monotonic() - began);
    },
    pass(ms) {
      ahead += ms;
    },
  };
}

/** A world on that clock. */
function systemOn(clock) {
  const { monotonic, sleep, after } = realSystem;
  return { ...fakeSystem(clock, seededDice(1, "fixture")), monotonic, sleep, after };
}

/** An error as a program of users throws it; the stack of this one would name a folder of one machine. */
function thrown(error) {
  return Object.assign(error, { stack: `${error.name}: ${error.message}\n    at send (mail.ts:12:9)` });
}

/** Handlers do as their input says. */
async function obey({ fails = null, progress = null }, context) {
  if (progress !== null) await context.progress(progress);
  if (fails === "always" || (fails === "once" && context.attempt === 1))
    throw thrown(new Error("The service is busy."));
  if (fails === "for good") throw thrown(new PermanentError("There is no such account."));
  if (fails === "never ends") await new Promise(() => undefined);
  return { ok: true };
}

const MAIL = defineJob("mail", { backoff: fixed("10m"), maxAttempts: 3, run: obey });
const PAY = defineJob("pay", { service: "bank", backoff: fixed("10m"), maxAttempts: 1, run: obey });
const IMPORT = defineJob("import", { backoff: fixed("10m"), maxCrashes: 3, stuck: { after: "6h" }, run: obey });
const REPORT = defineJob("report", { queue: "slow", run: obey });
const SHIP = defineJob("ship", { queue: "slow", maxAttempts: 1, run: obey });

const ITEMS = ["one", "two", "three", "four"].map((code) => JSON.stringify({ code }));

/** Fills a store; the last worker is left in the middle of a run, as if its process were killed there. */
export async function fill(store, clock) {
  const system = systemOn(clock);
  const services = { mailer: { breaker: { failures: 10 } } };
  const jobs = [MAIL, PAY, IMPORT, REPORT, SHIP];
  const surroundings = { system, process: { pid: 4_711, host: "a machine that is gone", isAlive: () => false } };
  const redrive = await assemble({ store, jobs, services, log: "silent" }, surroundings);
  const add = (job, label, options = {}, input = {}) => redrive.enqueue(job, { label, ...input }, options);
  const drain = () => redrive.worker({ concurrency: 1, poll: 20, release: "1.0.0" }).drain({ grace: 0 });

  await add(MAIL, "completed", { key: "completed", tenant: "acme", priority: 5 }, { progress: { step: 1 } });
  await add(MAIL, "completed after a retry", { service: "mailer" }, { fails: "once" });
  await add(PAY, "dead: exhausted", { key: "dead" }, { fails: "always" });
  await add(PAY, "dead: permanent", { tenant: "acme" }, { fails: "for good" });
  await add(MAIL, "dead: past its deadline", { deadline: "15m", maxAttempts: 10 }, { fails: "always" });
  const redriven = await add(PAY, "redriven, and dead once more", {}, { fails: "for good" });
  await drain();
  clock.pass(10 * MINUTE);
  await drain();
  await redrive.deadLetters.retry({ jobId: redriven.id });
  clock.pass(10 * MINUTE);
  await drain();

  for (const label of ["sent by a run", "repaired", "left to a run"])
    await add(SHIP, label, { tenant: "acme" }, { fails: "for good" });
  await add(MAIL, "waits for its retry", {}, { fails: "once" });
  await drain();
  await halfARedrive(redrive);
  await halfABatch(redrive, store, surroundings);
  await redrive.breakers.open("bank", { reason: "the bank is down" });
  await redrive.pause({ kind: "queue", name: "slow" }, { reason: "the reports can wait" });
  await redrive.pause({ kind: "tenant", name: "late payer" }, { for: "1h" });
  await redrive.schedules.set("hourly", { cron: "0 * * * *", job: MAIL, input: { label: "by the schedule" } });
  await redrive.schedules.set("paused", { every: "1m", job: MAIL });
  await redrive.schedules.pause("paused");

  await add(IMPORT, "runs in a worker that is gone", { group: "shop" }, { fails: "never ends" });
  await redrive.worker({ concurrency: 1, poll: 20, release: "1.0.0" }).start();
  while ((await store.count()).running < 1) await system.sleep(10);
  clock.pass(1_000);
  await add(IMPORT, "waits behind it in its group", { group: "shop" });
  await add(PAY, "parked by the open breaker");
  await add(REPORT, "waits in a paused queue");
  await add(MAIL, "due, of a paused tenant", { tenant: "late payer" });
  for (const unique of ["key", "queued", "active", "replace", "debounce"])
    await add(MAIL, `due, unique by ${unique}`, { key: `unique ${unique}`, unique, priority: 3 });
  await add(MAIL, "later", { delay: "1h", key: "later" });
  const cancelled = await add(MAIL, "cancelled", { delay: "2h" });
  await redrive.jobs.cancel(cancelled.id);
}

/** A list of four: the first batch is done, the second one failed, and no round of retries has begun. */
async function halfABatch(redrive, store, surroundings) {
  const run = (items) =>
    items.map(({ input }) => (["one", "two"].includes(input.code) ? done() : transient("not yet")));
  const plan = { name: "nightly", items: ITEMS, run, isExact: true, size: 2, retrySize: 1, maxRetries: 3, parallel: 1 };
  const { state } = await beginRun(store, plan);
  const job = batchJob(plan, state);
  const batch = await assemble({ store, jobs: [job], log: "silent" }, surroundings);
  await enqueueItems(store, job, plan);
  await batch.worker({ poll: 20, concurrency: 1 }).drain({ grace: 0 });
  await changeRun(store, { name: plan.name, run: state.run }, (now) => ({ ...now, firstPassMs: 250 }));
}

/** A run over three letters: one is sent and waits (its queue is paused later), one has another payload. */
async function halfARedrive(redrive) {
  const letters = (await redrive.deadLetters.list({ type: "ship" })).items;
  const repaired = letters.find(({ job }) => job.payload.includes("repaired"));
  const { fingerprint } = repaired.failure;
  await redrive.causes.note(fingerprint, "The carrier closed these accounts.", { why: "asked them" });
  await redrive.causes.own(fingerprint, "shipping");
  await redrive.deadLetters.edit(
    repaired.job.id,
    JSON.stringify({ label: "repaired", account: 9_007_199_254_740_991 }),
  );
  const { id } = await redrive.redrives.plan({ type: "ship" });
  await redrive.redrives.start(id, { canary: [1], rate: 100, why: "the accounts are open again" });
  await redrive.redrives.drive();
}
