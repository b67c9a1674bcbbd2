// `npm run bench -- questions`: what people ask a store that is full, right after two workers were killed with all that
// they held, before any vacuum. Every question is timed; the goal is 100 ms each, and 50 ms for the metrics of the store.
// Then ten viewers ask beside a worker.
//   --only sqlite|postgres   --jobs N (and as many dead letters; default 100,000, the goal is meant for 1,000,000)
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { HEALTH_LIMITS } from "../dist/core/health.js";
import { gatherHealth } from "../dist/operate/health.js";
import { readStoreMetrics } from "../dist/operate/store-metrics.js";
import { NO_LIMITS } from "../dist/services/holding.js";
import { createPostgresStore } from "../dist/store/postgres/index.js";
import { createSqliteStore } from "../dist/store/sqlite/index.js";
import { against, inScratch, median, newJob, row } from "./measure.mjs";
import { startPostgres } from "./postgres/server.mjs";
import { viewers } from "./viewers.mjs";

const GOAL_MS = 100;
/** Monitors ask again and again. */
const METRICS = "metrics of the store";
const METRICS_GOAL_MS = 50;
const CHUNK = 1_000;
const HELD = 5_000;
const CAUSES = 40;
const ACTOR = fileURLToPath(new URL("actors/questions.mjs", import.meta.url));

const { values: given } = parseArgs({
  options: {
    only: { type: "string" },
    short: { type: "boolean" },
    jobs: { type: "string" },
    "no-peers": { type: "boolean" },
  },
});
const jobs = Number(given.jobs ?? (given.short ? 2_000 : 100_000));
const letters = jobs;
const kinds = given.only?.split(",") ?? ["sqlite", "postgres"];

const open = (kind, address) =>
  kind === "sqlite" ? createSqliteStore({ path: address }) : createPostgresStore({ url: address });

/** Job n of a store: ten types, a hundred tenants, four services. */
const nth = (n) =>
  newJob({ type: `type-${n % 10}`, tenant: `tenant-${n % 100}`, service: n % 4 === 0 ? null : `service-${n % 4}` });

function failureOf(n) {
  const name = `Error${n % CAUSES}`;
  const failure = { class: "permanent", severity: "error", name, message: `no such file ${n}`, stack: `${name}: at x` };
  return { ...failure, fingerprint: `cause-${n % CAUSES}` };
}

/** Takes due jobs of every lane. */
async function take(store, worker, limit) {
  const { lanes } = await store.lanes(null, 10_000);
  const { version } = await store.control();
  const quotas = lanes.map(({ lane }) => ({ lane, limit }));
  const request = {
    worker,
    quotas,
    limit,
    nonce: `n-${Math.random()}`,
    control: version,
    ticket: 1,
    startedThrough: 0,
  };
  return (await store.claim(request)).jobs;
}

/** Enqueues `count` jobs and ends each by the verdict of its number. */
async function endMany(store, worker, count, verdict) {
  for (let done = 0; done < count; ) {
    await store.enqueue(Array.from({ length: Math.min(CHUNK, count - done) }, (_, i) => nth(done + i)));
    const taken = await take(store, worker, CHUNK);
    if (taken.length === 0) throw new Error("Nothing was taken.");
    const settlements = taken.map(({ id, epoch, nonce }, i) => ({ id, epoch, nonce, verdict: verdict(done + i) }));
    const { stale } = await store.settle({ settlements, worker });
    if (stale.length > 0) throw new Error(`${stale.length} verdicts were stale.`);
    done += taken.length;
  }
}

async function fillStore(store) {
  const worker = "filler";
  await store.register({ id: worker, leaseMs: 86_400_000, pid: process.pid, host: "bench", release: "1.0.0" });
  const dead = (n) => ({
    kind: "dead",
    reason: "permanent",
    charge: { attempts: 1, crashes: 0 },
    failure: failureOf(n),
  });
  await endMany(store, worker, letters, dead);
  await endMany(store, worker, Math.floor(jobs * 0.8), () => ({ kind: "complete", result: null }));
  for (let done = 0; done < jobs * 0.2; done += CHUNK)
    await store.enqueue(Array.from({ length: CHUNK }, (_, i) => nth(done + i)));
  const { items } = await store.list({ state: "queued", limit: 100 });
  await store.cancel(items.map(({ id }) => id));
}

/** A process that holds as many jobs as it may, and is killed. */
async function killHolder(kind, address) {
  const child = fork(ACTOR, ["hold", kind, address, String(HELD)]);
  const ended = once(child, "exit");
  const [held] = await Promise.race([once(child, "message"), ended.then(() => Promise.reject(new Error("It ended.")))]);
  child.kill("SIGKILL");
  await ended;
  return held;
}

/** Ends the runs of the killed workers: the upkeep of a worker does so within its lease, which no turn lasts for. */
async function endRuns(store) {
  for (const { id } of await store.workers()) {
    const held = await store.held(id);
    const verdict = { kind: "complete", result: null };
    for (let from = 0; from < held.length; from += CHUNK)
      await store.settle({ settlements: held.slice(from, from + CHUNK).map((lease) => ({ ...lease, verdict })) });
    await store.leave(id);
  }
}

const QUESTIONS = {
  "count, at most 10,000 of each": (store) => store.count(10_000),
  jobs: (store) => store.list({ limit: 50, lookAt: 10_000 }),
  ...Object.fromEntries(
    ["queued", "running", "completed", "dead", "cancelled"].map((state) => [
      `jobs, ${state}`,
      (store) => store.list({ limit: 50, state, lookAt: 10_000 }),
    ]),
  ),
  "jobs of a type": (store) => store.list({ limit: 50, type: "type-3", lookAt: 10_000 }),
  "jobs of no tenant there is": (store) => store.list({ limit: 50, tenant: "none", lookAt: 10_000 }),
  ...Object.fromEntries(
    ["queued", "running", "dead"].map((state) => [
      `jobs, ${state}, of no tenant there is`,
      (store) => store.list({ limit: 50, state, tenant: "none", lookAt: 10_000 }),
    ]),
  ),
  "jobs, due first, of a tenant": (store) => store.list({ limit: 50, sort: "due", tenant: "tenant-7", lookAt: 10_000 }),
  "jobs, due first": (store) => store.list({ limit: 50, sort: "due", lookAt: 10_000 }),
  letters: (store) => store.deadLetters({ limit: 50, lookAt: 10_000 }),
  "letters of a cause": (store) => store.deadLetters({ limit: 50, fingerprint: "cause-7", lookAt: 10_000 }),
  "letters with a text": (store) => store.deadLetters({ limit: 50, text: "nowhere", lookAt: 10_000 }),
  "letters of no tenant there is": (store) => store.deadLetters({ limit: 50, tenant: "none", lookAt: 10_000 }),
  causes: (store) => store.causes({ limit: 50 }),
  tally: (store) => store.tally({ lookAt: 10_000 }),
  "tally of a service": (store) => store.tally({ service: "service-1", lookAt: 10_000 }),
  workers: (store) => store.workers(),
  health: (store) => gatherHealth(store),
  [METRICS]: (store) => readStoreMetrics({ store, limits: NO_LIMITS, health: HEALTH_LIMITS }),
};

async function ask(store, question) {
  const times = [];
  for (let round = 0; round < 5; round++) {
    const began = performance.now();
    await question(store);
    times.push(performance.now() - began);
  }
  return times;
}

async function measure(kind, address, server) {
  const filler = open(kind, address);
  const began = performance.now();
  await fillStore(filler);
  const held = [await killHolder(kind, address), await killHolder(kind, address)];
  process.stdout.write(
    `\n${kind}: ${jobs} jobs and ${letters} letters of ${CAUSES} causes in ${Math.round((performance.now() - began) / 1000)} s; two workers killed with ${held.join(" and ")} jobs\n`,
  );
  await filler.close();
  const store = open(kind, address);
  // Its thread, or its connections, of which health uses several at once.
  await Promise.all(Array.from({ length: 4 }, () => [store.count(1), store.control()]).flat());
  let missed = 0;
  for (const [name, question] of Object.entries(QUESTIONS)) {
    const times = await ask(store, question);
    const worst = Math.max(...times);
    const goal = name === METRICS ? METRICS_GOAL_MS : GOAL_MS;
    if (worst > goal) missed += 1;
    const shown = `first ${times[0].toFixed(1)}, median ${median(times).middle.toFixed(1)} ms`;
    row(name, shown, against(`${worst.toFixed(1)} <= ${goal} ms`, worst <= goal));
  }
  await endRuns(store);
  await store.close();
  await viewers({ kind, address, server, short: given.short });
  return missed;
}

let missed = 0;
for (const kind of kinds)
  missed += await inScratch(async (folder) => {
    if (kind === "sqlite") return measure(kind, join(folder, "jobs.db"), null);
    const server = await startPostgres(folder);
    try {
      return await measure(kind, server.url("postgres"), server);
    } finally {
      await server.stop();
    }
  });
process.stdout.write(missed === 0 ? "\nEvery question was quick.\n" : `\n${missed} questions took too long.\n`);
