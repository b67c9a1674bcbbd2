// Forged histories about workers: what they report, how they are charged, whether they stop and come back (R5, R7, R9,
// R15), and how much they hold (R19). Each must be flagged with its rule.
import type { Forge, ForgedLease } from "./forge.ts";
import type { Forgery } from "./forged-jobs.ts";

/** Forgeries about workers. */
export const WORKER_FORGERIES: readonly Forgery[] = [
  ["R5", "a refused verdict is reported as counted", (f) => reportedStale(f)],
  [
    "R5",
    "a release is reported as completed",
    (f) => (f.enqueue("a"), reported(f, f.claim("a"), "release", "complete")),
  ],
  ["R5", "progress is taken after the end of the run", (f) => progressAfterEnd(f)],
  ["R5", "a worker takes a lost answer for a yes, and the run is judged by others", (f) => reportedLost(f)],
  ["R7", "a run is charged as started whose handler was never called", (f) => chargedUnstarted(f)],
  ["R9", "a run is not told to stop when its worker was given up", (f) => notTold(f)],
  ["R9", "a reaper judges right after its start", (f) => hastyReaper(f)],
  ["R15", "a worker that was given up does not come back", (f) => mark(f, "watched", { worker: "w" })],
  ["R15", "a worker lives on without a lease", (f) => withoutLease(f)],
  ["R19", "a worker claims more than it may hold", (f) => (mayHold(f, 2), held(f, 3))],
  ["R19", "a worker holds verdicts that the store has not taken", (f) => (mayHold(f, 2), unwritten(f))],
  [
    "R19",
    "a worker goes on although it settles more slowly",
    (f) => (mayHold(f, 9), held(f, 3), mayHold(f, 3), held(f, 1)),
  ],
];

function mark(f: Forge, answer: string, more: { worker?: string; delayMs?: number; leaseMs?: number } = {}): void {
  f.scribe.write("forger", "mark", "ok", { answer, ...more });
}

function mayHold(f: Forge, count: number): void {
  f.scribe.write("forger", "mark", "ok", { answer: "may_hold", worker: "w", count });
}

function held(f: Forge, count: number): void {
  const first = f.jobs.size;
  for (let n = first; n < first + count; n++) {
    f.enqueue(`job ${n}`);
    f.claim(`job ${n}`);
  }
}

function unwritten(f: Forge): void {
  for (const id of ["a", "b", "c"]) {
    f.enqueue(id);
    f.settle(f.claim(id), "complete", {}, "unknown");
  }
}

function reported(f: Forge, lease: ForgedLease, settled: string, answer: string): void {
  f.settle(lease, settled);
  f.scribe.write("forger", "report", "ok", { ...lease, answer, worker: "w" });
}

function reportedStale(f: Forge): void {
  f.enqueue("a");
  const first = f.claim("a");
  f.listed(first);
  f.settle(first, "retry", { crash: 1, worker: null });
  f.stale(first, "complete");
  f.scribe.write("forger", "report", "ok", { ...first, answer: "complete", worker: "w" });
  f.settle(f.claim("a"), "complete");
}

function reportedLost(f: Forge): void {
  f.enqueue("a");
  const lease = f.claim("a");
  f.settle(lease, "complete", {}, "unknown");
  f.stale(lease, "complete");
  f.scribe.write("forger", "report", "ok", { ...lease, answer: "complete", worker: "w" });
  f.listed(lease);
  f.settle(lease, "retry", { crash: 1, worker: null });
  f.settle(f.claim("a"), "complete");
}

function progressAfterEnd(f: Forge): void {
  f.enqueue("a");
  const lease = f.claim("a");
  f.settle(lease, "complete");
  f.settle(lease, "progress");
}

function chargedUnstarted(f: Forge): void {
  mark(f, "watched", { worker: "w" });
  f.enqueue("a");
  const lease = f.claim("a");
  f.listed(lease);
  f.settle(lease, "retry", { crash: 1, worker: null });
  f.settle(f.claim("a", { worker: "v" }), "complete", { worker: "v" });
  mark(f, "ended");
}

function notTold(f: Forge): void {
  f.enqueue("a");
  const lease = f.claim("a");
  const since = f.scribe.write("forger", "run", "invoke", { ...lease, payloadHash: 7, worker: "w" });
  f.call("beat", { worker: "w", leaseMs: 1000, startedThrough: 0 }, "ok", { answer: "given_up" });
  f.scribe.write("forger", "run", "ok", { ...lease, payloadHash: 7, worker: "w", answer: "ended" }, since);
  f.settle(lease, "complete");
}

function hastyReaper(f: Forge): void {
  f.enqueue("a");
  const lease = f.claim("a");
  mark(f, "judging", { delayMs: 10, leaseMs: 1000 });
  f.listed(lease);
  f.settle(lease, "retry", { crash: 1, worker: null });
  f.settle(f.claim("a", { worker: "v" }), "complete", { worker: "v" });
}

function withoutLease(f: Forge): void {
  mark(f, "watched", { worker: "w" });
  f.beat("w");
  f.workers.push({ id: "w", leaseEnd: f.time + 1000, running: 0 });
  f.time += 5000;
}
