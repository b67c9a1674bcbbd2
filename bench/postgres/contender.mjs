// What every contender on Postgres does here, Redrive as well as its peers, so that all are measured by the same loops:
// fill, enqueue, drain, serve. An actor names its library's calls and the rest is in this file. Node built-ins only,
// because peers use it too.
//
//   open(task)                    → { migrate(), add(input), addMany(inputs, task), close() }
//   work(task, hears)             → stop(); hears.claiming() before every claim, hears.run(input, attempt) for every job,
//                                   hears.completed(times) when that is written
import { setTimeout as sleep } from "node:timers/promises";
import { actor, stamp } from "../actor.mjs";

/** The input of every job, about a hundred bytes. */
export const INPUT = { customer: "c-4711", url: "https://example.com/orders/123456", note: "x".repeat(30) };

/** Without a completion for so long a worker is done; one whose retries wait has to be given longer. */
const QUIET_MS = 2_000;
const QUIET_BETWEEN_TRIES_MS = 6_000;
const FIRST_WITHIN_MS = 20_000;
const LOOK_MS = 20;

/** Plays the task of this process with the calls of one library. */
export function contend({ open, work }) {
  const using = (use) => async (task, go, told) => {
    const producer = await open(task);
    try {
      return await use(producer, task, go, told);
    } finally {
      await producer.close();
    }
  };
  const tasks = {
    fill: using(async (producer, task, go) => {
      await go();
      await producer.migrate();
      await producer.addMany(inputs(task.count), task);
      return {};
    }),
    bulk: using(bulk),
    enqueue: using(enqueue),
    produce: using(produce),
    drain: (task, go) => drain(work, task, go),
    serve: (task, go, told) => serve(work, task, go, told),
  };
  return actor((task, go, told) => tasks[task.kind](task, go, told));
}

function* inputs(count) {
  for (let made = 0; made < count; made++) yield INPUT;
}

/** Splits a stream of inputs into arrays of a size, worked off by some lines at once. */
export async function inChunks(stream, size, lines, write) {
  const iterator = stream[Symbol.iterator]();
  const line = async () => {
    for (;;) {
      const chunk = [];
      for (let next; chunk.length < size && !(next = iterator.next()).done; ) chunk.push(next.value);
      if (chunk.length === 0) return;
      await write(chunk);
    }
  };
  await Promise.all(Array.from({ length: lines }, line));
}

async function bulk(producer, task, go) {
  await producer.migrate();
  await producer.addMany(inputs(1_000), task);
  await go();
  const began = performance.now();
  await producer.addMany(inputs(task.count), task);
  return { perSecond: task.count / ((performance.now() - began) / 1000) };
}

async function enqueue(producer, { callers, count }, go) {
  await producer.migrate();
  const call = async (times) => {
    for (let made = 0; made < times; made++) await producer.add(INPUT);
  };
  // Connections are opened before.
  await Promise.all(Array.from({ length: callers }, () => call(1)));
  await go();
  const began = performance.now();
  await Promise.all(Array.from({ length: callers }, () => call(count / callers)));
  return { perSecond: count / ((performance.now() - began) / 1000) };
}

async function produce(producer, { count }, go) {
  await producer.migrate();
  await go();
  // Not counted: the first call waits for connections and plans, here as above.
  await producer.add({ at: null });
  await sleep(500);
  for (let made = 0; made < count; made++) {
    await sleep(50 + Math.random() * 50);
    await producer.add({ at: stamp(), note: "x".repeat(60) });
  }
  await sleep(500);
  return {};
}

/**
 * Works until all is done or, with another process beside this one, until nothing more comes. Measured from the first
 * claim, because libraries differ in how much of their start can be done before.
 */
async function drain(work, task, go) {
  const figures = { began: 0, ended: 0, completed: 0, failedLast: 0, retriedFirst: 0 };
  const claiming = () => void (figures.began ||= stamp());
  const run = (_input, attempt) => {
    claiming();
    if (!task.failOnce) return;
    if (attempt === 1) {
      figures.failedLast = stamp();
      throw new Error("connect ECONNRESET");
    }
    figures.retriedFirst ||= stamp();
  };
  const completed = (times) => {
    figures.completed += times;
    figures.ended = stamp();
  };
  await go();
  const started = stamp();
  const used = process.cpuUsage();
  const stop = await work(task, { claiming, run, completed });
  const quietMs = task.failOnce ? QUIET_BETWEEN_TRIES_MS : QUIET_MS;
  while (figures.completed < task.count) {
    await sleep(LOOK_MS);
    const since = stamp() - (figures.ended || started);
    if (since > (figures.ended ? quietMs : FIRST_WITHIN_MS)) break;
  }
  const peakMb = process.resourceUsage().maxRSS / 1024;
  const { user, system } = process.cpuUsage(used);
  await stop();
  return { ...figures, peakMb, cpuMs: (user + system) / 1000 };
}

async function serve(work, task, go, told) {
  const pickups = [];
  const ignore = () => undefined;
  const run = ({ at }) => {
    if (at !== null) pickups.push(stamp() - at);
  };
  const stop = await work(task, { claiming: ignore, run, completed: ignore });
  await go();
  await told.next();
  await stop();
  return { pickups };
}
