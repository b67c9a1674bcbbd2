// The SQLite store alone, as safe as at synchronous=FULL: claim N and settle N through the store thread, beside a bare loop in one
// thread that does the same work on the same schema (the equal-work limit). Prints ratios; only those count.
import { join } from "node:path";
import { delayBefore, exponential } from "../dist/core/backoff.js";
import { verdict } from "../dist/core/verdict.js";
import { realSystem } from "../dist/system/real.js";
import { equalWork, RESULT, SET } from "./equal-work.mjs";
import { against, fill, inScratch, median, quantile, row, withStore } from "./measure.mjs";

const short = process.argv.includes("--short");
const JOBS = short ? 10_000 : 60_000;
const PULSE_MS = 100;
const ROUNDS = short ? 1 : 3;

/** Claims and settles everything due, two sets in flight, as a worker with prefetch does. */
async function drain(store, jobs) {
  const worker = realSystem.workerId();
  await store.register({ id: worker, leaseMs: 60_000, pid: process.pid, host: "bench", release: null });
  const { version } = await store.control();
  let ticket = 1;
  let settled = 0;
  const began = performance.now();
  const line = async () => {
    for (;;) {
      const { lanes } = await store.lanes(null, 100);
      const quotas = lanes.filter((lane) => lane.service === null).map(({ lane }) => ({ lane, limit: SET }));
      const request = {
        worker,
        quotas,
        limit: SET,
        nonce: realSystem.nonce(),
        control: version,
        ticket,
        startedThrough: ticket,
      };
      ticket += SET;
      const { jobs: claimed } = await store.claim(request);
      if (claimed.length === 0) return;
      const settlements = claimed.map(({ id, epoch, nonce }) => ({
        id,
        epoch,
        nonce,
        verdict: { kind: "complete", result: RESULT },
      }));
      const { stale } = await store.settle({ settlements, worker, startedThrough: ticket });
      settled += claimed.length - stale.length;
    }
  };
  await Promise.all([line(), line()]);
  if (settled !== jobs) throw new Error(`settled ${settled} of ${jobs}`);
  return jobs / ((performance.now() - began) / 1000);
}

async function throughput() {
  const ours = [];
  const limits = [];
  for (let round = 0; round < ROUNDS; round++) {
    ours.push(
      await inScratch((folder) =>
        withStore(join(folder, "bench.db"), async (store) => {
          await fill(store, JOBS);
          return drain(store, JOBS);
        }),
      ),
    );
    limits.push(
      await inScratch(async (folder) => {
        await withStore(join(folder, "bench.db"), (store) => fill(store, JOBS));
        return equalWork(join(folder, "bench.db"), JOBS);
      }),
    );
  }
  const [mine, limit] = [median(ours), median(limits)];
  const share = mine.middle / limit.middle;
  row("equal-work loop, jobs/s", `${Math.round(limit.middle)} ± ${Math.round(limit.spread * 50)} %`);
  row("store, claim 500 / settle 500, jobs/s", `${Math.round(mine.middle)} ± ${Math.round(mine.spread * 50)} %`);
  row("share of the equal-work limit", `${Math.round(share * 100)} %`, against("≥ 85 %", share >= 0.85));
  return mine.middle;
}

async function crowded(alone) {
  const [later, parked] = short ? [50_000, 10_000] : [1_000_000, 120_000];
  await inScratch((folder) =>
    withStore(join(folder, "bench.db"), async (store) => {
      await fill(store, later, { delayMs: 86_400_000 });
      await fill(store, parked, { service: "down" });
      const rates = [];
      for (let round = 0; round < ROUNDS; round++) {
        await fill(store, JOBS);
        rates.push(await drain(store, JOBS));
      }
      const { middle, spread } = median(rates);
      row(
        `with ${later} scheduled and ${parked} parked, jobs/s`,
        `${Math.round(middle)} ± ${Math.round(spread * 50)} %`,
      );
      row(
        "share of the rate without them",
        `${Math.round((middle / alone) * 100)} %`,
        against("≥ 90 %", middle >= alone * 0.9),
      );
    }),
  );
}

async function heartbeat() {
  await inScratch((folder) =>
    withStore(join(folder, "bench.db"), async (store) => {
      await fill(store, JOBS * 2);
      await store.register({ id: "pulse", leaseMs: 30_000, pid: process.pid, host: "bench", release: null });
      let busy = true;
      const taken = [];
      const pulse = async () => {
        while (busy) {
          const at = performance.now();
          await store.beat({ worker: "pulse", leaseMs: 30_000, startedThrough: 0 });
          taken.push(performance.now() - at);
          await realSystem.sleep(2);
        }
      };
      // The workers' own heartbeat, which leaves from the store thread every 100 ms: how late is it at the worst?
      const heard = [performance.now()];
      const request = { worker: "pulse", leaseMs: 30_000, everyMs: PULSE_MS, stallMs: 60_000 };
      const beating = store.pulse(request, { answer: () => heard.push(performance.now()), failure: () => undefined });
      await Promise.all([pulse(), drain(store, JOBS * 2).finally(() => (busy = false))]);
      beating.stop();
      const latest = Math.max(...heard.slice(1).map((at, n) => at - heard[n] - PULSE_MS));
      const p99 = quantile(taken, 0.99);
      row(
        `heartbeat while saturated, p50 / p99 of ${taken.length}`,
        `${quantile(taken, 0.5).toFixed(1)} / ${p99.toFixed(1)} ms`,
        against("p99 < 50 ms", p99 < 50),
      );
      row(`latest of ${heard.length - 1} beats from the store thread`, `${latest.toFixed(1)} ms late`);
    }),
  );
}

function judging() {
  const policy = {
    backoff: exponential({ initial: "1s", multiplier: 3, max: "1h", jitter: "full" }),
  };
  const job = {
    attempts: 2,
    crashes: 0,
    maxAttempts: 10,
    maxCrashes: 3,
    deadlineMs: 3_600_000,
    stuckRetryMs: null,
    stuckLimit: null,
    dueAt: 0,
    lastDelayMs: 1000,
    cancelRequested: false,
  };
  const failure = {
    class: "network",
    severity: "warning",
    name: "Error",
    message: "reset",
    stack: null,
    fingerprint: "f",
  };
  const calls = short ? 200_000 : 2_000_000;
  const cost = [];
  for (let round = 0; round < ROUNDS; round++) {
    const began = performance.now();
    let delays = 0;
    for (let call = 0; call < calls; call++)
      delays += verdict(job, { kind: "failed", failure }, policy, call, Math.random).delayMs;
    if (!(delays > 0) || delayBefore === undefined) throw new Error("no delays");
    cost.push(((performance.now() - began) / calls) * 1e6);
  }
  const { middle } = median(cost);
  row("verdict about a failure", `${Math.round(middle)} ns`, against("< 1 µs", middle < 1000));
}

const alone = await throughput();
await crowded(alone);
await heartbeat();
judging();
