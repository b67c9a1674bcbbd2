// Fills a queue with the jobs of some tenants and works it off with default settings, through the library as users have it;
// with limits, breaker, budget and rate limits are configured for all of them, and none is reached.
import { createRedrive, defineJob } from "../../dist/index.js";
import { actor } from "../actor.mjs";

const LIMITS = {
  services: { bench: { budget: {}, rateLimit: { limit: 1_000_000 } } },
  tenants: { "*": { weight: 1, rateLimit: { limit: 100_000 } } },
};

await actor(async ({ store, count, tenants, limits }, go) => {
  const job = defineJob("bench", { service: "bench", run: () => ({ ok: true }) });
  const redrive = await createRedrive({ store, jobs: [job], log: "error", ...(limits && LIMITS) });
  const inputs = Array.from({ length: count }, (_, n) => ({ n, note: "x".repeat(80) }));
  await redrive.enqueueMany(job, inputs, { each: ({ n }) => ({ tenant: `t${n % tenants}` }) });
  await go();
  const began = performance.now();
  const { completed } = await redrive.worker().drain({ grace: 0 });
  const perSecond = completed / ((performance.now() - began) / 1000);
  await redrive.close();
  if (completed !== count) throw new Error(`completed ${completed} of ${count}`);
  return { perSecond };
});
