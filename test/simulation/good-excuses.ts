// Histories that look wrong at first sight and are right: the checker must pass each of them.
import type { Forge, ForgedLease } from "./forge.ts";

/** What is right about it, and the history. */
export type GoodExcuse = readonly [how: string, forge: (f: Forge) => void];

const KEPT = { completedMs: 1000, cancelledMs: 1000, deadMs: 1000, keyMs: 1000 };
const FIFO = { fifo: "k" };

/** Histories with a good excuse. */
export const GOOD_EXCUSES: readonly GoodExcuse[] = [
  ["a job is pruned whose verdict counted, but was not heard of", (f) => prunedUnheard(f)],
  ["a job is pruned that was asked to stop and then released", (f) => prunedCancelled(f)],
  ["a claim passes while nobody heard whether the breaker closed", (f) => closing(f)],
  ["a job of a group waits for the one before it", (f) => waitsForGroup(f)],
  ["a job that was put off lets the next one of its group pass", (f) => passed(f)],
  ["after the clock stepped back, what came later is due first", (f) => dueFirst(f)],
  ...(["queued", "replace", "debounce"] as const).map(
    (mode): GoodExcuse => [`a second job comes while the first runs, its key being ${mode}`, (f) => second(f, mode)],
  ),
  ["a claim that was under way when the second job came is heard of later", (f) => heardLater(f)],
  ["a halted worker hears of a claim long after its run was given up and its group went on", (f) => heardTooLate(f)],
  ["a job whose key was taken over while it ran waits for its next try", (f) => takenOver(f)],
  ["a waiting job gets another body, and a claim under way still has the old one", (f) => oldBody(f)],
  ["a waiting job has a body of which nobody heard whether it was taken", (f) => unheardBody(f)],
  ["a debounced job is claimed when it is due", (f) => debounced(f)],
  ["after the clock stepped back, a job of another priority is claimed when its retry is due", (f) => reranked(f)],
  ["the clock steps back while a claim is under way, or the verdict before it", (f) => overStep(f)],
  ["the clock may be stepping back while a claim is under way", (f) => inStep(f)],
  ["a row was locked when its verdict came, and the verdict counts when it is sent again", (f) => locked(f)],
  ["a worker claims as much again when its jobs are settled", (f) => holdsAgain(f)],
  ["a breaker is half-open at the end, and nothing waits for it", (f) => halfOpen(f)],
];

function keyed(f: Forge, mode: string, id = "a"): void {
  f.enqueue(id, { key: "mail/k", mode });
}

function done(f: Forge, id: string, claimed: object = {}): void {
  f.settle(f.claim(id, claimed), "complete");
}

function prune(f: Forge): void {
  f.time += 9999;
  f.call("prune", { kept: KEPT }, "ok", { count: 1 });
  f.jobs.delete("a");
}

function holdsAgain(f: Forge): void {
  f.scribe.write("forger", "mark", "ok", { answer: "may_hold", worker: "w", count: 1 });
  f.whole("a");
  f.settle((f.enqueue("b"), f.claim("b")), "release");
  f.settle(f.claim("b"), "complete");
}

function halfOpen(f: Forge): void {
  f.call("breaker", { service: "media", answer: "half-open", count: 1 }, "ok", {});
  f.enqueue("a", { service: "media" });
  done(f, "a", { service: "media" });
  f.whole("b");
}

function prunedUnheard(f: Forge): void {
  f.enqueue("a");
  const lease = f.claim("a");
  f.settle(lease, "complete", {}, "unknown");
  f.stale(lease, "complete");
  prune(f);
}

function prunedCancelled(f: Forge): void {
  f.enqueue("a");
  const lease = f.claim("a");
  f.cancel("a", "requested");
  f.settle(lease, "release");
  prune(f);
}

function closing(f: Forge): void {
  f.call("breaker", { service: "media", answer: "open", count: 0 }, "ok", {});
  f.call("breaker", { service: "media", answer: "closed", count: 0 }, "unknown", {});
  f.enqueue("a");
  done(f, "a", { service: "media" });
}

function waitsForGroup(f: Forge): void {
  f.scribe.write("forger", "mark", "ok", { answer: "healthy", delayMs: 1250 });
  f.enqueue("a", FIFO);
  f.enqueue("b", FIFO);
  const lease = f.claim("a");
  f.time += 5000;
  f.settle(lease, "complete");
  done(f, "b");
}

function passed(f: Forge): void {
  f.enqueue("a", FIFO);
  f.enqueue("b", FIFO);
  f.call("reschedule", { job: "a", delayMs: 500 }, "ok", { answer: "changed" });
  done(f, "b");
  f.time += 500;
  done(f, "a", { runAt: f.time });
}

function dueFirst(f: Forge): void {
  f.enqueue("a", FIFO);
  f.time -= 5000;
  f.scribe.write("forger", "mark", "ok", { answer: "clock_back" });
  f.enqueue("b", FIFO);
  done(f, "b");
  f.time += 5000;
  done(f, "a");
}

function second(f: Forge, mode: string): void {
  keyed(f, mode);
  const lease = f.claim("a");
  keyed(f, mode, "b");
  f.settle(lease, "complete");
  done(f, "b");
}

function heardLater(f: Forge): void {
  keyed(f, "queued");
  const sent = f.scribe.write("forger", "claim", "invoke", { nonce: "a:1", worker: "w" });
  keyed(f, "queued", "b");
  f.settle(f.claim("a", {}, sent), "complete");
  done(f, "b");
}

function heardTooLate(f: Forge): void {
  f.enqueue("a", FIFO);
  f.enqueue("b", FIFO);
  const sent = f.scribe.write("forger", "claim", "invoke", { nonce: "a:1", worker: "halted" });
  const { generation, attempts, crashes, maxAttempts, payloadHash, runAt } = f.job("a");
  const lease: ForgedLease = { job: "a", epoch: 1, nonce: "a:1", generation };
  const taken = { ...lease, attempts, crashes, maxAttempts, payloadHash, runAt, worker: "halted", storeTime: f.time };
  f.time += 5000;
  f.job("a").epoch = 1;
  f.listed(lease, { worker: "halted" });
  f.settle(lease, "retry", { crash: 1, worker: null });
  done(f, "a");
  const next = f.claim("b");
  f.scribe.write("forger", "claim", "ok", taken, sent);
  f.scribe.write("forger", "claim", "ok", { nonce: "a:1", worker: "halted", answer: "taken" }, sent);
  f.stale(lease, "release");
  f.settle(next, "complete");
}

function takenOver(f: Forge): void {
  keyed(f, "queued");
  const lease = f.claim("a");
  keyed(f, "queued", "b");
  f.settle(lease, "retry");
  done(f, "b");
  keyed(f, "queued", "c");
  done(f, "c");
  done(f, "a");
}

function replace(f: Forge, mode: string, delayMs: number, phase: "ok" | "unknown" = "ok"): void {
  const sent = { job: "z", key: "mail/k", mode, payloadHash: 8, delayMs };
  f.call("enqueue", sent, phase, { job: "a", asked: "z", answer: "replaced" });
}

function oldBody(f: Forge): void {
  keyed(f, "replace");
  const sent = f.scribe.write("forger", "claim", "invoke", { nonce: "a:1", worker: "w" });
  const since = f.scribe.write("forger", "enqueue", "invoke", ASKED);
  f.scribe.write(
    "forger",
    "enqueue",
    "ok",
    { ...ASKED, job: "a", asked: "z", answer: "replaced", storeTime: 1 },
    since,
  );
  const lease: ForgedLease = f.claim("a", {}, sent);
  f.settle(lease, "release");
  done(f, "a", { payloadHash: 8 });
  f.job("a").payloadHash = 8;
}

const ASKED = { job: "z", key: "mail/k", mode: "replace", payloadHash: 8, delayMs: 0 };

function unheardBody(f: Forge): void {
  keyed(f, "replace");
  replace(f, "replace", 0, "unknown");
  done(f, "a", { payloadHash: 8 });
  f.job("a").payloadHash = 8;
}

function debounced(f: Forge): void {
  keyed(f, "debounce");
  replace(f, "debounce", 700);
  f.time += 700;
  done(f, "a", { payloadHash: 8, runAt: f.time });
  f.job("a").payloadHash = 8;
}

/** The due time of its enqueue lies ahead, and is no longer that of the job. */
function reranked(f: Forge): void {
  f.enqueue("a");
  const lease = f.claim("a");
  f.time -= 5000;
  f.scribe.write("forger", "mark", "ok", { answer: "clock_back" });
  f.settle(lease, "retry");
  f.call("reschedule", { job: "a" }, "ok", { answer: "changed" });
  done(f, "a");
}

function stepBack(f: Forge, answer: string): void {
  f.time -= 5000;
  f.scribe.write("forger", "mark", "ok", { answer });
}

/** Whether a job was due, and until when it waits, was decided by the clock before the step; what was answered is of after it, or the other way round. */
function overStep(f: Forge): void {
  f.enqueue("a");
  const since = f.scribe.write("forger", "mark", "ok", {});
  stepBack(f, "clock_back");
  const lease = f.claim("a", {}, since);
  const line = { ...lease, answer: "retry", charge: 1, crash: 0, delayMs: 0, worker: "w" };
  const sent = f.scribe.write("forger", "settle", "invoke", line);
  stepBack(f, "clock_back");
  f.scribe.write("forger", "settle", "ok", { ...line, storeTime: f.time + 5000 }, sent);
  Object.assign(f.job("a"), { attempts: 1, state: "queued", runAt: f.time });
  done(f, "a");
}

function inStep(f: Forge): void {
  f.enqueue("a");
  f.scribe.write("forger", "mark", "ok", { answer: "clock_steps_back" });
  f.time -= 5000;
  done(f, "a");
  f.scribe.write("forger", "mark", "ok", { answer: "clock_back" });
}

function locked(f: Forge): void {
  f.enqueue("a");
  const lease = f.claim("a");
  const verdict = { kind: "complete", result: null } as const;
  const { job: id, epoch, nonce } = lease;
  const call = f.scribe.sent("forger", "settle", [{ settlements: [{ id, epoch, nonce, verdict }], worker: "w" }]);
  call?.answered({ stale: [], locked: [{ id, epoch, nonce }], now: f.time }, f.time);
  f.settle(lease, "complete");
}
