// Forged histories about jobs as such: lost, doubled, made up, wrongly charged, out of their states (R1 to R3, R7 to R9,
// R13 to R17). Each must be flagged with its rule.
import type { Rule } from "../support/history/event.ts";
import type { Forge } from "./forge.ts";

/** The rule that is broken, how, and the history. */
export type Forgery = readonly [rule: Rule, how: string, forge: (f: Forge) => void];

const KEPT = { completedMs: 1000, cancelledMs: 1000, deadMs: 1000, keyMs: 1000 };

/** Forgeries about jobs. */
export const JOB_FORGERIES: readonly Forgery[] = [
  ["R1", "a confirmed job is gone", (f) => (f.enqueue("a"), f.jobs.delete("a"))],
  ["R1", "a completed job is gone although nobody pruned", (f) => (f.whole("a"), f.jobs.delete("a"))],
  ["R1", "an observer finds nothing", (f) => (f.whole("a"), f.observe("a", "missing"))],
  ["R1", "a job is pruned before its time", (f) => (f.whole("a"), prune(f, 1), f.jobs.delete("a"))],
  ["R1", "a waiting job is pruned", (f) => (f.enqueue("a"), (f.time += 9999), prune(f, 1), f.jobs.delete("a"))],
  [
    "R2",
    "one id is created twice",
    (f) => (f.whole("a"), f.call("enqueue", { job: "a" }, "ok", { answer: "created" })),
  ],
  ["R2", "one id is found twice", (f) => (f.whole("a"), f.extra.push({ ...f.job("a") }))],
  ["R2", "a lost answer and its repetition leave two jobs", (f) => twoOfOneKey(f)],
  ["R2", "a keyed enqueue repeated until confirmed leaves none", (f) => (twoOfOneKey(f), f.jobs.clear())],
  ["R3", "a job nobody enqueued is found", (f) => (f.whole("a"), f.extra.push({ ...f.job("a"), id: "b" }))],
  ["R3", "a job nobody enqueued is claimed", (f) => f.call("claim", { nonce: "n" }, "ok", { job: "a", epoch: 1 })],
  ["R3", "a run has another payload", (f) => (f.whole("a"), f.call("run", { job: "a", payloadHash: 8 }, "ok", {}))],
  [
    "R3",
    "a claim has another payload",
    (f) => (f.enqueue("a"), f.settle(f.claim("a", { payloadHash: 8 }), "complete")),
  ],
  ["R3", "the payload changed in the store", (f) => (f.whole("a"), (f.job("a").payloadHash = 8))],
  ["R7", "a release is charged", (f) => (f.enqueue("a"), f.settle(f.claim("a"), "release"), charge(f), finish(f))],
  ["R7", "an attempt is handed back", (f) => (f.enqueue("a"), f.settle(f.claim("a"), "retry"), forgive(f), finish(f))],
  ["R7", "a failure is not charged at the end", (f) => (f.dead("a"), forgive(f))],
  [
    "R7",
    "a job is claimed with its budget spent",
    (f) => (f.enqueue("a"), f.settle(f.claim("a", { maxAttempts: 0 }), "complete")),
  ],
  [
    "R7",
    "a job goes over its budget",
    (f) => (f.whole("a"), f.observe("a", "completed", { attempts: 4, maxAttempts: 3 })),
  ],
  ["R7", "a run is called started that had not", (f) => ticketed(f, 5, true)],
  ["R7", "a run is called not started that had", (f) => ticketed(f, 1, false)],
  ["R8", "a dead job has no letter", (f) => (f.dead("a"), f.letters.pop())],
  [
    "R8",
    "a dead job has two letters",
    (f) => (f.dead("a"), f.letters.push({ job: "a", generation: 1, redriven: false })),
  ],
  [
    "R8",
    "a completed job has a letter",
    (f) => (f.whole("a"), f.letters.push({ job: "a", generation: 1, redriven: false })),
  ],
  [
    "R8",
    "the letter of a dead job is marked redriven",
    (f) => (f.dead("a"), f.letters.splice(0, 1, { job: "a", generation: 1, redriven: true })),
  ],
  ["R8", "an observer sees a dead job without a letter", (f) => (f.dead("a"), f.observe("a", "dead", { count: 0 }))],
  [
    "R8",
    "an observer sees a letter of a living job",
    (f) => (f.enqueue("a"), f.observe("a", "queued", { count: 1 }), finish(f)),
  ],
  ["R9", "a completed job is claimed", (f) => (f.whole("a"), finish(f))],
  ["R9", "a cancelled job is claimed", (f) => (f.enqueue("a"), f.cancel("a"), finish(f))],
  ["R9", "a generation comes from nowhere", (f) => (f.dead("a"), (f.job("a").generation = 2), finish(f))],
  ["R9", "a living job is redriven", (f) => (f.enqueue("a"), f.redrive("a"), finish(f))],
  ["R9", "a job is completed by nobody", (f) => (f.enqueue("a"), (f.job("a").state = "completed"))],
  ["R9", "a completed job is found dead", (f) => (f.whole("a"), (f.job("a").state = "dead"))],
  ["R9", "a running job is cancelled at once", (f) => (f.enqueue("a"), f.claim("a"), f.cancel("a"))],
  ["R9", "a worker claims after it was given up", (f) => (f.enqueue("a"), reap(f), finish(f))],
  ["R13", "two jobs are created for one key", (f) => (f.whole("a", KEYED), f.whole("b", KEYED))],
  ["R13", "another body counts as a duplicate", (f) => (f.whole("a", KEYED), again(f, "duplicate", 8))],
  ["R13", "the same body counts as a conflict", (f) => (f.whole("a", KEYED), again(f, "conflict", 7))],
  [
    "R13",
    "a duplicate names a job of another key",
    (f) => (f.whole("a", KEYED), f.whole("c"), again(f, "duplicate", 7, "c")),
  ],
  [
    "R13",
    "a key is free before its time",
    (f) => (f.whole("a", KEYED), (f.time += 500), prune(f, 0), f.whole("b", KEYED)),
  ],
  [
    "R14",
    "one generation is redriven twice",
    (f) => (f.dead("a"), f.redrive("a"), f.job("a").generation--, f.redrive("a"), finish(f)),
  ],
  [
    "R14",
    "one redrive makes two generations",
    (f) => (f.dead("a"), f.redrive("a"), f.job("a").generation++, finish(f)),
  ],
  ["R14", "one redrive is found as two generations", (f) => (f.dead("a"), f.redrive("a"), f.job("a").generation++)],
  ["R15", "a due job still waits", (f) => f.enqueue("a")],
  ["R15", "a run never ends", (f) => (f.enqueue("a"), f.claim("a"))],
  ["R15", "a released job is forgotten", (f) => (f.enqueue("a"), f.settle(f.claim("a"), "release"))],
  ["R15", "an expired worker still holds runs", (f) => f.workers.push({ id: "w", leaseEnd: 1, running: 1 })],
  ["R16", "a checkpoint counts too few", (f) => (f.whole("a"), f.whole("b"), count(f, 1))],
  ["R16", "a checkpoint counts too many", (f) => (f.whole("a"), count(f, 2))],
  ["R16", "more jobs are gone than were pruned", (f) => gone(f, 0)],
  ["R16", "fewer jobs are gone than were pruned", (f) => gone(f, 2)],
  ["R17", "a lost answer left a run that never ends", (f) => lostAck(f, "running")],
  ["R17", "a lost answer left a waiting job", (f) => lostAck(f, "queued")],
  ["R17", "a lost answer left a dead job", (f) => lostAck(f, "dead")],
];

const KEYED = { key: "mail/k" };

function finish(f: Forge): void {
  f.settle(f.claim("a"), "complete");
}

function charge(f: Forge): void {
  f.job("a").attempts++;
}

function forgive(f: Forge): void {
  f.job("a").attempts--;
}

function prune(f: Forge, number: number): void {
  f.call("prune", { kept: KEPT }, "ok", { count: number });
}

function count(f: Forge, completed: number): void {
  f.call("count", {}, "ok", { counts: { queued: 0, running: 0, completed, dead: 0, cancelled: 0 } });
}

function twoOfOneKey(f: Forge): void {
  f.enqueue("a", { key: "mail/k" }, "unknown");
  f.enqueue("b", { key: "mail/k" }, "ok");
  f.call("enqueue", { job: "b", key: "mail/k", payloadHash: 7 }, "unknown", {});
  for (const id of ["a", "b"]) f.settle(f.claim(id), "complete");
}

function again(f: Forge, answer: string, payloadHash: number, names = "a"): void {
  f.call("enqueue", { job: "z", key: "mail/k", payloadHash }, "ok", { job: names, asked: "z", answer });
}

function gone(f: Forge, pruned: number): void {
  f.whole("a");
  f.time += 5000;
  prune(f, pruned);
  f.jobs.delete("a");
}

function reap(f: Forge): void {
  const lease = f.claim("a");
  f.listed(lease);
  f.settle(lease, "retry", { crash: 1 });
}

/** A run with this ticket under a worker that has said three times that tickets up to 2 have started. */
function ticketed(f: Forge, ticket: number, started: boolean): void {
  f.enqueue("a");
  const lease = f.claim("a", { ticket });
  f.call("beat", { worker: "w", leaseMs: 100, startedThrough: 2 }, "ok", { answer: "alive" });
  f.time += 1000;
  f.listed(lease, { started });
  f.settle(lease, "retry", { crash: 1 });
  f.settle(f.claim("a", { worker: "v" }), "complete");
}

function lostAck(f: Forge, state: "running" | "queued" | "dead"): void {
  f.enqueue("a");
  f.settle(f.claim("a"), "complete", {}, "unknown");
  f.job("a").state = state;
}
