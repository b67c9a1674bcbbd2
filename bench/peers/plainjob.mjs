// plainjob as shipped (SQLite, synchronous=NORMAL, one job at a time), over the same driver as Redrive on Node below 24.
// Tasks: fill a file, drain it, add many jobs a call, or enqueue one job after the other (its calls are synchronous, so
// callers queue up).
import Database from "better-sqlite3";
import { better, defineQueue, defineWorker, JobStatus } from "plainjob";
import { actor, stamp } from "../actor.mjs";

const quiet = { error: console.error, warn: () => undefined, info: () => undefined, debug: () => undefined };
const data = { customer: "c-4711", url: "https://example.com/orders/123456", note: "x".repeat(30) };

const TASKS = {
  async fill(queue, { count }, go) {
    await go();
    for (let done = 0; done < count; done += 1_000) {
      queue.addMany(
        "bench",
        Array.from({ length: Math.min(1_000, count - done) }, () => data),
      );
    }
    return {};
  },
  async bulk(queue, { count }, go) {
    const some = Array.from({ length: 1_000 }, () => data);
    const add = (jobs) => {
      for (let done = 0; done < jobs; done += 1_000)
        queue.addMany("bench", some.slice(0, Math.min(1_000, jobs - done)));
    };
    add(Math.min(count, 20_000));
    await go();
    const began = performance.now();
    add(count);
    return { perSecond: count / ((performance.now() - began) / 1000) };
  },
  async drain(queue, { count }, go) {
    let left = count;
    let end;
    const ended = new Promise((resolve) => (end = resolve));
    const onCompleted = () => {
      if (--left === 0) end(stamp());
    };
    const worker = defineWorker("bench", () => undefined, { queue, logger: quiet, onCompleted });
    await go();
    const began = stamp();
    void worker.start();
    const at = await ended;
    await worker.stop();
    const completed = queue.countJobs({ status: JobStatus.Done });
    return { began, ended: at, completed, peakMb: process.resourceUsage().maxRSS / 1024 };
  },
  async enqueue(queue, { callers, count }, go) {
    const call = async (times) => {
      for (let made = 0; made < times; made++) await queue.add("bench", data);
    };
    await go();
    const began = performance.now();
    await Promise.all(Array.from({ length: callers }, () => call(count / callers)));
    return { perSecond: count / ((performance.now() - began) / 1000) };
  },
};

await actor(async (task, go) => {
  const queue = defineQueue({ connection: better(new Database(task.path)), logger: quiet });
  const figures = await TASKS[task.kind](queue, task, go);
  queue.close();
  return figures;
});
