// Forged histories about runs: ended twice, under old leases, overlapping, too early, past a breaker, out of order (R4 to
// R6, R10 to R12). Each must be flagged with its rule.
import type { Forge, ForgedLease } from "./forge.ts";
import type { Forgery } from "./forged-jobs.ts";

/** Forgeries about runs. */
export const RUN_FORGERIES: readonly Forgery[] = [
  ["R4", "one run completes twice", (f) => (f.enqueue("a"), twice(f, f.claim("a")))],
  ["R4", "two runs of one generation complete", (f) => (f.whole("a"), f.settle(f.claim("a"), "complete"))],
  ["R4", "a dead job completes without a redrive", (f) => (f.dead("a"), f.settle(f.claim("a"), "complete"))],
  ["R4", "a cancelled job completes", (f) => (f.enqueue("a"), f.cancel("a"), f.settle(f.claim("a"), "complete"))],
  ["R4", "a job is cancelled twice", (f) => (f.enqueue("a"), f.cancel("a"), f.cancel("a"))],
  ["R5", "an old lease settles after the next claim", (f) => oldLease(f)],
  [
    "R5",
    "a nonce nobody gave out settles",
    (f) => (f.enqueue("a"), f.settle({ ...f.claim("a"), nonce: "made up" }, "complete")),
  ],
  ["R5", "one lease ends its run twice", (f) => (f.enqueue("a"), twice(f, f.claim("a")))],
  ["R5", "a current lease is refused", (f) => currentRefused(f)],
  ["R5", "a reaper settles a run it was not shown", (f) => reapedByAnother(f)],
  ["R5", "a run starts under another nonce", (f) => (f.enqueue("a"), startedAs(f, f.claim("a"), "made up"))],
  ["R6", "an epoch is given out twice", (f) => (f.whole("a"), f.job("a").epoch--, f.claim("a"))],
  ["R6", "an epoch falls", (f) => (longLife(f), (f.job("a").epoch = 0), f.claim("a"))],
  ["R6", "a running job is claimed", (f) => (f.enqueue("a"), f.claim("a"), f.settle(f.claim("a"), "complete"))],
  ["R6", "the store holds an older epoch", (f) => (longLife(f), (f.job("a").epoch = 1))],
  ["R6", "a run is reaped before the lease end", (f) => reapedEarly(f)],
  ["R10", "an open breaker lets a claim through", (f) => (breaker(f, "open", 0), served(f, "a"))],
  ["R10", "a breaker opens again and lets a claim through", (f) => reopened(f)],
  [
    "R10",
    "a half-open breaker lets one too many through",
    (f) => (breaker(f, "half-open", 1), served(f, "a"), served(f, "b")),
  ],
  ["R10", "a half-open breaker of none lets one through", (f) => (breaker(f, "half-open", 0), served(f, "a"))],
  [
    "R11",
    "a claim lies before its due time",
    (f) => (f.enqueue("a"), f.settle(f.claim("a", { runAt: f.time + 1 }), "complete")),
  ],
  [
    "R11",
    "a delayed job is claimed at once",
    (f) => (f.enqueue("a", { delayMs: 500 }), f.settle(f.claim("a"), "complete")),
  ],
  ["R11", "a retry is claimed before its delay", (f) => earlyRetry(f)],
  ["R11", "claims are late although all is well", (f) => late(f)],
  ["R12", "two jobs of one FIFO key run at once", (f) => (fifo(f), f.claim("a"), f.claim("b"))],
  ["R12", "a later job starts first", (f) => (fifo(f), f.claim("b"))],
  ["R12", "a retry lets the next job pass", (f) => (fifo(f), f.settle(f.claim("a"), "retry"), f.claim("b"))],
];

function twice(f: Forge, lease: ForgedLease): void {
  f.settle(lease, "complete");
  f.settle(lease, "complete");
}

function oldLease(f: Forge): void {
  f.enqueue("a");
  const first = f.claim("a");
  f.settle(first, "release");
  f.claim("a");
  f.settle(first, "complete");
}

function currentRefused(f: Forge): void {
  f.enqueue("a");
  const lease = f.claim("a");
  f.stale(lease, "complete");
  f.settle(lease, "complete");
}

function reapedByAnother(f: Forge): void {
  f.enqueue("a");
  const first = f.claim("a");
  f.listed(first);
  f.settle(first, "release");
  f.claim("a", { worker: "v" });
  f.settle(first, "retry", { crash: 1 });
}

function startedAs(f: Forge, lease: ForgedLease, nonce: string): void {
  f.scribe.write("forger", "run", "invoke", { ...lease, nonce, payloadHash: 7 });
  f.settle(lease, "complete");
}

function longLife(f: Forge): void {
  f.enqueue("a");
  for (let i = 0; i < 3; i++) f.settle(f.claim("a"), "release");
  f.settle(f.claim("a"), "complete");
}

function reapedEarly(f: Forge): void {
  f.enqueue("a");
  const lease = f.claim("a");
  f.call("beat", { worker: "w", leaseMs: 1000, startedThrough: 0 }, "ok", { answer: "alive" });
  f.time += 500;
  f.listed(lease);
  f.settle(lease, "retry", { crash: 1 });
  f.settle(f.claim("a", { worker: "v" }), "complete");
}

function breaker(f: Forge, state: string, probes: number): void {
  f.call("breaker", { service: "media" }, "ok", { answer: state, count: probes });
}

function served(f: Forge, id: string): void {
  f.enqueue(id);
  f.claim(id, { service: "media" });
}

function reopened(f: Forge): void {
  breaker(f, "open", 0);
  breaker(f, "closed", 0);
  served(f, "a");
  breaker(f, "open", 0);
  served(f, "b");
}

function earlyRetry(f: Forge): void {
  f.enqueue("a");
  f.settle(f.claim("a"), "retry", { delayMs: 300 });
  f.time += 200;
  f.settle(f.claim("a"), "complete");
}

function late(f: Forge): void {
  f.scribe.write("forger", "mark", "ok", { answer: "healthy", delayMs: 1250 });
  f.enqueue("a");
  f.time += 2000;
  f.settle(f.claim("a"), "complete");
}

function fifo(f: Forge): void {
  f.enqueue("a", { fifo: "k" });
  f.enqueue("b", { fifo: "k" });
}
