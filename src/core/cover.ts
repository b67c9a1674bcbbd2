// How long an outage a policy survives: when the last attempt starts, counted from the first failure, if every attempt
// fails. Chance is a parameter, as everywhere in core; the work is bounded whatever the policy says.
import { type Backoff, delayBefore } from "./backoff.ts";
import type { Failure } from "./job.ts";
import type { Policy } from "./policy.ts";

/** The wait after one attempt: between `lowMs` and `highMs` in 90 of 100 cases. */
export interface DelayBand {
  /** The attempt that failed, 1 for the first. */
  readonly attempt: number;
  readonly lowMs: number;
  readonly midMs: number;
  readonly highMs: number;
}

/** What a policy covers: the outage that 95, 50 and 5 of 100 jobs survive. */
export interface Cover {
  readonly p5Ms: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
}

/** The delays of a policy and what they cover; null where a function of the program makes the delays. */
export interface PolicyCover {
  readonly delays: readonly DelayBand[];
  readonly cover: Cover | null;
}

/** Delays that are listed, and draws in all. */
const SHOWN_MOST = 100;
const DRAWS_MOST = 200_000;
const SAMPLES_MOST = 1_000;

const FAILED: Failure = {
  class: "transient",
  severity: "warning",
  name: "Error",
  message: "",
  stack: null,
  fingerprint: "",
};

/** Plays the policy through many times and reads the quantiles. */
export function coverOf(
  { maxAttempts, backoff, deadlineMs }: Pick<Policy, "maxAttempts" | "backoff" | "deadlineMs">,
  random: () => number,
): PolicyCover {
  if (backoff.kind === "custom") return { delays: [], cover: null };
  const retries = maxAttempts - 1;
  const samples = isSteady(backoff) ? 1 : Math.max(20, Math.min(SAMPLES_MOST, Math.floor(DRAWS_MOST / (retries + 1))));
  const drawn: number[][] = Array.from({ length: Math.min(retries, SHOWN_MOST) }, () => []);
  const lasts: number[] = [];
  for (let sample = 0; sample < samples; sample++) {
    let startMs = 0;
    let lastMs = 0;
    let previousMs = 0;
    for (let attempt = 1; attempt <= retries; attempt++) {
      previousMs = delayBefore(backoff, { attempt, failure: FAILED, previousDelayMs: previousMs, random });
      drawn[attempt - 1]?.push(previousMs);
      startMs += previousMs;
      if (deadlineMs === null || startMs <= deadlineMs) lastMs = startMs;
    }
    lasts.push(lastMs);
  }
  const delays = drawn.map((each, at) => {
    const of = quantiles(each);
    return { attempt: at + 1, lowMs: of(0.05), midMs: of(0.5), highMs: of(0.95) };
  });
  const of = quantiles(lasts);
  return { delays, cover: { p5Ms: of(0.05), p50Ms: of(0.5), p95Ms: of(0.95) } };
}

/** True where chance changes nothing. */
function isSteady(backoff: Backoff): boolean {
  return backoff.kind === "immediate" || (backoff.kind !== "custom" && backoff.jitter === "none");
}

function quantiles(values: readonly number[]): (share: number) => number {
  const sorted = values.toSorted((a, b) => a - b);
  return (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

/** Numbers that look random and are the same in every call, so that a preview does not flicker (mulberry32). */
export function steadyChance(seed = 1): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
