// One caller that enqueues a thousand jobs a call through the public API, one call after the other; gives how many jobs a
// second went through.
import { createRedrive } from "../../dist/index.js";
import { actor } from "../actor.mjs";
import { bench } from "./jobs.mjs";

const input = { customer: "c-4711", url: "https://example.com/orders/123456", note: "x".repeat(30) };

const inputs = Array.from({ length: 1_000 }, () => input);

await actor(async ({ path, count }, go) => {
  const redrive = await createRedrive({ store: `sqlite:${path}`, jobs: [bench] });
  const add = async (jobs) => {
    for (let done = 0; done < jobs; done += inputs.length)
      await redrive.enqueueMany(bench, inputs.slice(0, Math.min(inputs.length, jobs - done)));
  };
  // The first thousands of a process are slow everywhere, while V8 learns.
  const warm = Math.min(count, 20_000);
  await add(warm);
  await go();
  const began = performance.now();
  await add(count);
  const perSecond = count / ((performance.now() - began) / 1000);
  const { queued } = await redrive.jobs.count();
  await redrive.close();
  if (queued !== warm + count) throw new Error(`enqueued ${queued} of ${warm + count}`);
  return { perSecond };
});
