// Who is measured, with which settings, and who cannot be. The settings of the peers are the best of a sweep on two
// cores with these no-op jobs of 100 bytes; who reruns it finds that
//   graphile-worker gains up to a local queue of 5,000 to 10,000 jobs (its documentation says 500: about half as fast), and
//     a little from 5 ms between batches of completions instead of 0; more jobs at a time cost nothing; polling every
//     100 ms matters where two processes take jobs from under each other, because a short fetch makes it rest;
//   pg-boss gains up to batches of 2,000 and a second fetcher in the process, and loses again with a third; two
//     processes do better with one fetcher each and batches of 5,000; without `burstWhenBatchFull` it would rest half a
//     second after every batch, which is its shortest;
//   BullMQ takes and completes every job in a statement of its own: more than 50 at once or connections than 10 change
//     nothing, and neither does `removeOnComplete`.
import { existsSync } from "node:fs";
import { play, playTogether } from "../actor.mjs";
import { inDatabase, statements } from "./database.mjs";

/** Redrive with default settings. */
export const REDRIVE = { name: "Redrive", module: "./postgres/redrive.mjs", share: 1, task: {} };

const GRAPHILE = "./peers-postgres/graphile-worker.mjs";

/**
 * `share` of the jobs for those that would take long; `task` is what they drain best with, and what differs from it for
 * two processes (`paired`), for jobs that fail (`failing`) and for an idle worker (`waiting`); `shipped` for one whose
 * producer has a row already.
 */
const PEERS = [
  { name: "graphile-worker, default", module: GRAPHILE, share: 0.02, task: {}, shipped: true },
  {
    name: "graphile-worker, best",
    module: GRAPHILE,
    share: 1,
    task: {
      worker: {
        concurrentJobs: 100,
        localQueue: { size: 5_000 },
        completeJobBatchDelay: 5,
        failJobBatchDelay: 5,
        pollInterval: 100,
      },
    },
  },
  {
    name: "pg-boss, best",
    module: "./peers-postgres/pg-boss.mjs",
    share: 1,
    task: {
      worker: { batchSize: 2_000, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 },
    },
    paired: { batchSize: 5_000, localConcurrency: 1 },
    failing: { batchSize: 1_000, localConcurrency: 1 },
    waiting: { notify: true },
  },
  {
    name: "BullMQ, best",
    module: "./peers-postgres/bullmq.mjs",
    share: 0.02,
    task: { worker: { concurrency: 50 } },
  },
];

/** The peers that can run here, or the reason why none can. */
export function peersHere(wanted) {
  if (!wanted) return { peers: [], missing: "left out by --no-peers" };
  if (!existsSync(new URL("../peers-postgres/node_modules", import.meta.url)))
    return { peers: [], missing: "not installed in bench/peers-postgres; use npm run bench -- postgres" };
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < 22 || (major === 22 && minor < 18))
    return {
      peers: [],
      missing: `they need Node 22.18, this is ${process.versions.node}; use npm run bench -- postgres`,
    };
  return { peers: PEERS, missing: null };
}

/** Has one play a task of enqueueing in a new database; gives jobs per second. */
export async function enqueueRate(server, { module, task, share }, kind, { count, ...rest }) {
  const part = { ...task, ...rest, kind, count: Math.round(count * (kind === "bulk" ? 1 : share)) };
  return inDatabase(server, async (url) => (await play(module, { ...part, url })).perSecond);
}

/**
 * Fills a new database and has some processes drain it; gives their figures, the CPU time that the server took, and `left`
 * rows where it has to ask.
 */
export function drained(server, { module, task, share, paired, failing, left }, { count, processes = 1, ...rest }) {
  const part = { ...task, ...rest, count: Math.round(count * share) };
  part.worker = { ...task.worker, ...(processes > 1 ? paired : {}), ...(rest.failOnce ? failing : {}) };
  return inDatabase(server, async (url) => {
    await play(module, { ...part, kind: "fill", url });
    const before = server.cpuMs();
    const figures = await drainedAgain(url, { module }, { ...part, processes });
    Object.assign(figures, { serverCpuMs: server.cpuMs() - before });
    return left ? Object.assign(figures, (await statements(url, left))[0]) : figures;
  });
}

/** The same where the database is filled already. */
export async function drainedAgain(url, { module }, { processes, count, ...rest }) {
  const parts = Array.from({ length: processes }, () => [module, { kind: "drain", ...rest, url, count }]);
  const figures = await playTogether(...parts);
  const completed = figures.reduce((sum, figure) => sum + figure.completed, 0);
  if (completed !== count) throw new Error(`${module} completed ${completed} of ${count}`);
  return figures;
}

/** What a job costs in CPU time: in the processes of its worker, and in the server. */
export function cpuOf(figures) {
  const completed = figures.reduce((sum, figure) => sum + figure.completed, 0);
  const workerMs = figures.reduce((sum, { cpuMs }) => sum + cpuMs, 0);
  return { worker: (workerMs / completed) * 1000, server: (figures.serverCpuMs / completed) * 1000 };
}

/** From the first claim to the last completion on disk, in seconds; one that came too late to get a job does not count. */
export function secondsOf(all) {
  const figures = all.filter(({ completed }) => completed > 0);
  const began = Math.min(...figures.map((figure) => figure.began));
  return (Math.max(...figures.map((figure) => figure.ended)) - began) / 1000;
}
