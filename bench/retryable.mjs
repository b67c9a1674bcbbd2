// What `retryable` costs a call that succeeds at once, beside cockatiel and p-retry as their manuals use them: a function
// with an argument, nanoseconds per call. The contestants take turns in one process, so that a busy moment hits all.
import { createRequire } from "node:module";
import { createBreaker, retryable } from "../dist/index.js";
import { against, median, row } from "./measure.mjs";

const short = process.argv.includes("--short");
const CALLS = short ? 2_000 : 50_000;
const ROUNDS = short ? 5 : 31;
/** Timers cost so much more that fewer calls say the same. */
const FEWER = 20;

let sum = 0;
const work = async (n) => {
  sum += n;
};

/** Nanoseconds per call, one call after the other. */
async function cost(call, calls) {
  const before = sum;
  const began = performance.now();
  for (let n = 0; n < calls; n++) await call(1);
  const ns = ((performance.now() - began) / calls) * 1e6;
  if (sum - before !== calls) throw new Error(`${sum - before} of ${calls} calls were made`);
  return ns;
}

/** A package of bench/peers, or the reason why it is not there. */
async function peer(name) {
  if (process.argv.includes("--no-peers")) return { why: "left out by --no-peers" };
  try {
    const address = createRequire(new URL("./peers/package.json", import.meta.url)).resolve(name);
    return { module: await import(address) };
  } catch {
    return { why: "not installed in bench/peers; use npm run bench" };
  }
}

function ours() {
  return {
    Redrive: retryable(work),
    "Redrive, no deadline": retryable(work, { deadline: null }),
    "Redrive, breaker": retryable(work, { breaker: createBreaker("bench") }),
    "Redrive, timeout": retryable(work, { timeout: "30s" }),
  };
}

function cockatiels({ module }) {
  if (!module) return {};
  const { circuitBreaker, ConsecutiveBreaker, ExponentialBackoff, handleAll, retry, SamplingBreaker } = module;
  const again = retry(handleAll, { maxAttempts: 5, backoff: new ExponentialBackoff() });
  const breaker = (kind) => module.wrap(again, circuitBreaker(handleAll, { halfOpenAfter: 30_000, breaker: kind }));
  const counting = breaker(new ConsecutiveBreaker(10));
  const sampling = breaker(new SamplingBreaker({ threshold: 0.5, duration: 60_000, minimumRps: 1 }));
  const limited = module.wrap(again, module.timeout(30_000, module.TimeoutStrategy.Aggressive));
  return {
    cockatiel: (n) => again.execute(() => work(n)),
    "cockatiel, consecutive breaker": (n) => counting.execute(() => work(n)),
    "cockatiel, sampling breaker": (n) => sampling.execute(() => work(n)),
    "cockatiel, timeout": (n) => limited.execute(() => work(n)),
  };
}

function pRetries({ module }) {
  if (!module) return {};
  // Every option is given, because filling in those left out makes it many times slower on Node 20.
  const options = {
    retries: 5,
    factor: 3,
    minTimeout: 1_000,
    maxTimeout: 60_000,
    maxRetryTime: 300_000,
    randomize: true,
    onFailedAttempt: () => undefined,
    shouldRetry: () => true,
    shouldConsumeRetry: () => true,
  };
  return { "p-retry": (n) => module.default(() => work(n), options) };
}

/** The median cost of each, round by round. */
async function measure(calls) {
  const costs = Object.fromEntries(Object.keys(calls).map((name) => [name, []]));
  // The first rounds are for the compiler.
  for (let round = -3; round < ROUNDS; round++) {
    for (const [name, call] of Object.entries(calls)) {
      const ns = await cost(call, name.includes("timeout") ? CALLS / FEWER : CALLS);
      if (round >= 0) costs[name].push(ns);
    }
  }
  return Object.fromEntries(Object.entries(costs).map(([name, values]) => [name, median(values).middle]));
}

const [cockatiel, pRetry] = [await peer("cockatiel"), await peer("p-retry")];
const figures = await measure({ "bare call": work, ...ours(), ...cockatiels(cockatiel), ...pRetries(pRetry) });

/** One of ours, and for each peer how many times as much it costs. */
function compare(name, rivals) {
  row(`${name}, ns per call`, `${Math.round(figures[name])}`);
  for (const [rival, { why }] of rivals) {
    const ns = figures[rival];
    const times = ns / figures[name];
    if (ns === undefined) row(`  ${rival}`, `(${why})`);
    else row(`  ${rival}`, `${Math.round(ns)}, ${times.toFixed(2)} ×`, against(`< ${rival}`, times > 1));
  }
}

row("bare call, ns per call", `${Math.round(figures["bare call"])}`);
compare("Redrive", [
  ["cockatiel", cockatiel],
  ["p-retry", pRetry],
]);
compare("Redrive, no deadline", [["cockatiel", cockatiel]]);
compare("Redrive, breaker", [
  ["cockatiel, consecutive breaker", cockatiel],
  ["cockatiel, sampling breaker", cockatiel],
]);
compare("Redrive, timeout", [["cockatiel, timeout", cockatiel]]);
