// Ten viewers, each with one question a second, in a process of their own beside a worker process that drains no-op jobs:
// what a job costs with them and without, the same number of jobs in turns. On Postgres the worker and the viewers have
// roles of their own, so that the server's processes that serve one are told from those that serve the other.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createPostgresStore } from "../dist/store/postgres/index.js";
import { createSqliteStore } from "../dist/store/sqlite/index.js";
import { against, fill, median, quantile, row } from "./measure.mjs";
import { statements } from "./postgres/database.mjs";

const ACTOR = fileURLToPath(new URL("actors/questions.mjs", import.meta.url));
const VIEWERS = 10;
const GOAL = 1.05;

/** Starts an actor; `tell` sends a word and gives the answer. */
async function start(role, kind, address) {
  const child = fork(ACTOR, [role, kind, address, String(VIEWERS)]);
  const ended = once(child, "exit").then(([code]) => Promise.reject(new Error(`The ${role} process ended: ${code}.`)));
  ended.catch(() => undefined);
  const heard = () => Promise.race([once(child, "message").then(([said]) => said), ended]);
  await heard();
  const tell = (word) => {
    const answer = heard();
    child.send(word);
    return answer;
  };
  return { tell, end: () => child.kill("SIGKILL") };
}

/** The same address for another role, which is made. */
async function addressFor(role, address) {
  await statements(address, `create role ${role} superuser login`);
  const url = new URL(address);
  url.username = role;
  return url.href;
}

/** The processes of the server that serve a role. */
async function serving(address, role) {
  const found = await statements(address, `select pid from pg_stat_activity where usename = '${role}'`);
  return found.map(({ pid }) => pid);
}

/** Runs one slice: CPU a job in microseconds, by who used it, and the p99 of the claims. */
async function slice({ kind, address, server, count }, worker, viewing) {
  const store = kind === "sqlite" ? createSqliteStore({ path: address }) : createPostgresStore({ url: address });
  await fill(store, count);
  await store.close();
  if (server) await statements(address, "checkpoint");
  if (viewing) await viewing.tell("ask");
  const parts = server ? { working: await serving(address, "worker"), viewing: await serving(address, "viewer") } : {};
  const used = () => ({
    ...Object.fromEntries(Object.entries(parts).map(([name, pids]) => [name, server.cpuOf(pids)])),
    ...(server && { server: server.cpuMs() }),
  });
  const before = used();
  const { completed, claims, cpuMs, seconds } = await worker.tell("drain");
  if (completed !== count) throw new Error(`The worker completed ${completed} of ${count} jobs.`);
  const after = used();
  const times = viewing ? await viewing.tell("rest") : {};
  const each = (ms) => (ms * 1_000) / count;
  const cpu = Object.fromEntries(Object.keys(after).map((name) => [name, each(after[name] - before[name])]));
  return {
    worker: each(cpuMs),
    ...cpu,
    both: each(cpuMs) + (cpu.server ?? 0),
    p99: quantile(claims, 0.99),
    seconds,
    times,
  };
}

/** Prints one figure with viewers beside that without; the ratio is the middle one of all turns. */
function compare(name, turns, figure, unit, goal = 0) {
  const [alone, watched] = ["alone", "watched"].map((which) => median(turns.map((turn) => turn[which][figure])));
  const ratio = median(turns.map((turn) => turn.watched[figure] / turn.alone[figure])).middle;
  const spread = `± ${Math.round(alone.spread * 50)} %`;
  const shown = `${watched.middle.toFixed(1)} of ${alone.middle.toFixed(1)} ${unit} ${spread}`;
  row(name, shown, goal === 0 ? `${ratio.toFixed(2)} x` : against(`${ratio.toFixed(2)} <= ${goal} x`, ratio <= goal));
}

function report(turns, { server, count }) {
  const rate = median(turns.map(({ alone }) => count / alone.seconds)).middle;
  row(`${VIEWERS} viewers beside a worker, turns of ${count} jobs`, `${turns.length}, at ${Math.round(rate)} jobs/s`);
  compare("CPU a job, worker process", turns, "worker", "us", GOAL);
  if (server) {
    compare("CPU a job, the server's processes for the worker", turns, "working", "us", GOAL);
    compare("CPU a job, the whole server", turns, "server", "us", GOAL);
    compare("CPU a job, worker and whole server", turns, "both", "us", GOAL);
    const share = median(turns.map(({ watched }) => watched.viewing)).middle;
    row("  of that, the server's processes for viewers", `${share.toFixed(2)} us`);
  }
  compare("claims, p99", turns, "p99", "ms");
  const all = {};
  for (const { watched } of turns)
    for (const [name, times] of Object.entries(watched.times)) (all[name] ??= []).push(...times);
  for (const [name, times] of Object.entries(all)) {
    const shown = `p50 ${quantile(times, 0.5).toFixed(1)}, worst ${Math.max(...times).toFixed(1)} ms`;
    row(`  ${name}, asked ${times.length} times`, shown);
  }
}

/** Rows about viewers. */
export async function viewers({ kind, address, server, short }) {
  const task = { kind, address, server, count: short ? 1_000 : 100_000 };
  const addressOf = (role) => (server ? addressFor(role, address) : address);
  const worker = await start("work", kind, await addressOf("worker"));
  const view = await start("view", kind, await addressOf("viewer"));
  const turns = [];
  try {
    // The first finds what the killed workers held, and V8 has not seen its code.
    await slice(task, worker, null);
    for (let turn = 0; turn < (short ? 2 : 10); turn++) {
      const isFirst = turn % 2 === 0;
      const first = await slice(task, worker, isFirst ? null : view);
      const second = await slice(task, worker, isFirst ? view : null);
      turns.push(isFirst ? { alone: first, watched: second } : { alone: second, watched: first });
    }
  } finally {
    worker.end();
    view.end();
  }
  report(turns, task);
}
