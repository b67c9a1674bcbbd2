// bee-queue over a Redis of its own without persistence, with as many slots as Redrive has by default, and without the
// events to which this program does not listen. Tasks: fill a queue and drain it; jobs may be told to fail at their first attempt.
import Queue from "bee-queue";
import { actor, stamp } from "../actor.mjs";

const data = { customer: "c-4711", url: "https://example.com/orders/123456", note: "x".repeat(30) };
const SLOTS = 50;

await actor(async ({ socket, name, count, failOnce = false }, go) => {
  const settings = { redis: { path: socket }, getEvents: false, sendEvents: false, storeJobs: false };
  const queue = new Queue(name, settings);
  await queue.ready();
  for (let done = 0; done < count; done += 1_000) {
    const jobs = Array.from({ length: Math.min(1_000, count - done) }, () => queue.createJob(data));
    if (failOnce) for (const job of jobs) job.retries(1).backoff("immediate");
    const failed = await queue.saveAll(jobs);
    if (failed.size > 0) throw [...failed.values()][0];
  }
  let left = count;
  let end;
  const ended = new Promise((resolve) => (end = resolve));
  queue.on("succeeded", () => {
    if (--left === 0) end(stamp());
  });
  await go();
  const began = stamp();
  queue.process(SLOTS, async (job) => {
    if (failOnce && job.options.retries === 1) throw new Error("connect ECONNRESET");
    return { ok: true };
  });
  const at = await ended;
  const { succeeded } = await queue.checkHealth();
  const figures = { began, ended: at, completed: succeeded, peakMb: process.resourceUsage().maxRSS / 1024 };
  await queue.close(1_000);
  return figures;
});
