// Redrive as another folder has it compiled, through its public face: enqueues jobs and works until all are completed, each
// time it is told to, and answers with the CPU that this process has used for either.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** No process of a benchmark lives longer, whatever it waits for. */
const LONGEST_MS = 3_600_000;

const [tree, store] = process.argv.slice(2);
const { createRedrive, defineJob, immediate } = await import(pathToFileURL(join(tree, "dist", "index.js")).href);

/** What a failing job throws at its first attempt. */
const THROWS = {
  done: () => undefined,
  fails: () => {
    throw new Error("connect ECONNRESET");
  },
  "fails with ids": ({ n }) => {
    throw new Error(`Order ${n} of customer c-${n % 977} cannot be shipped from depot ${n % 31}`);
  },
  "fails in a library": ({ n }) => {
    const error = new Error(`deadlock detected while updating tuple (${n},3) in relation "orders"`);
    throw Object.assign(error, { name: "error", code: "40P01", severity: "ERROR", routine: "DeadLockReport" });
  },
};

const jobs = Object.entries(THROWS).map(([name, fail]) =>
  defineJob(name.replaceAll(" ", "-"), {
    backoff: immediate(),
    run(input, { attempt }) {
      if (attempt === 1) fail(input);
      return { ok: true };
    },
  }),
);
const redrive = await createRedrive({ store, jobs, log: "error" });

const usedUs = (since) => {
  const { user, system } = process.cpuUsage(since);
  return user + system;
};

async function slice({ kind, count }) {
  const type = kind.replaceAll(" ", "-");
  const inputs = Array.from({ length: count }, (_, n) => ({ n, note: "x".repeat(80) }));
  const before = process.cpuUsage();
  for (let at = 0; at < count; at += 1_000) await redrive.enqueueMany(type, inputs.slice(at, at + 1_000));
  process.send({ enqueue: usedUs(before) / count });
  await new Promise((resolve) => process.once("message", resolve));
  const [worker, began] = [redrive.worker(), process.cpuUsage()];
  let left = count;
  const all = new Promise((resolve) => {
    const off = redrive.on("job.completed", () => --left === 0 && resolve(off));
  });
  await worker.start();
  const off = await all;
  await worker.stop();
  if (typeof off === "function") off();
  process.send({ work: usedUs(began) / count });
}

process.on("message", (task) => task.kind && void slice(task));
process.send("ready");
setTimeout(() => process.exit(1), LONGEST_MS).unref();
process.once("disconnect", () => void redrive.close().finally(() => process.exit(0)));
