// Forged histories in which something looks like an excuse and is none: verdicts that were only sent (R1), changes of a
// breaker under way (R10), groups, services and crashes (R11), reschedules clocks that step back (R12), and breakers
// that stay half-open (R20).
import type { Forge } from "./forge.ts";
import type { Forgery } from "./forged-jobs.ts";

const KEPT = { completedMs: 1000, cancelledMs: 1000, deadMs: 1000, keyMs: 1000 };

/** Forgeries with a bad excuse. */
export const HOLD_FORGERIES: readonly Forgery[] = [
  ["R1", "a job is gone whose verdict was refused", (f) => (refused(f), gone(f, 9999))],
  ["R1", "a job is gone whose verdict was not heard of, and which was claimed again since", (f) => claimedSince(f)],
  ["R1", "a job is gone whose verdict was not heard of, and which no prune was to take yet", (f) => tooYoung(f)],
  ["R1", "a job is gone that died and was sent back", (f) => (f.dead("a"), f.redrive("a"), gone(f, 9999))],
  ["R1", "a job is gone that a removal did not find", (f) => (f.whole("a"), remove(f, 0), f.jobs.delete("a"))],
  [
    "R1",
    "an observer misses a job that waits, after a prune",
    (f) => (f.enqueue("a"), (f.time += 9999), prune(f, 0), f.observe("a", "missing")),
  ],
  ["R10", "an open breaker is about to open for longer", (f) => (change(f, "open"), sent(f, "open"), served(f, "a"))],
  [
    "R10",
    "an open breaker is about to be half-open, and too many come",
    (f) => (change(f, "open"), sent(f, "half-open", 1), served(f, "a"), served(f, "b")),
  ],
  [
    "R10",
    "nobody heard whether a half-open breaker opened again, and too many come",
    (f) => (change(f, "half-open", 1), sent(f, "open", 0, "unknown"), served(f, "a"), served(f, "b")),
  ],
  [
    "R10",
    "an open breaker was not closed, because that change was refused",
    (f) => (change(f, "open"), sent(f, "closed", 0, "fail"), served(f, "a")),
  ],
  ["R10", "two handlers are called for one probe", (f) => twoProbes(f)],
  ["R11", "a job of a group is late although none of it ran", (f) => late(f, { fifo: "k" })],
  ["R11", "a job of a group is late after the one before it ended", (f) => lateAfter(f)],
  ["R11", "a job of a service is late whose breaker never opened", (f) => late(f, {}, { service: "media" })],
  [
    "R11",
    "a job of a service is late long after its breaker closed",
    (f) => (change(f, "open"), change(f, "closed"), late(f, {}, { service: "media" })),
  ],
  ["R11", "a job with a crash waits for more than five minutes", (f) => lateSuspect(f)],
  ["R11", "a job that was put off is claimed at once", (f) => (f.enqueue("a"), move(f, "a", 500), done(f, "a"))],
  [
    "R11",
    "a job that was given another priority is claimed before its retry is due",
    (f) => (f.enqueue("a"), f.settle(f.claim("a"), "retry", { delayMs: 300 }), move(f, "a", -1), done(f, "a")),
  ],
  ["R12", "the clock stepped back, but before both jobs came", (f) => (back(f), two(f), done(f, "b"), done(f, "a"))],
  [
    "R12",
    "the clock stepped back in between, and the job that is due first has to wait",
    (f) => (f.enqueue("a", FIFO), back(f), f.enqueue("b", FIFO), (f.time += 9999), done(f, "a"), done(f, "b")),
  ],
  [
    "R12",
    "a job that was put off goes before one that was not",
    (f) => (two(f), move(f, "a", 500), (f.time += 500), done(f, "a", { runAt: f.time }), done(f, "b")),
  ],
  [
    "R12",
    "a reschedule that changed nothing lets the next job pass",
    (f) => (two(f), move(f, "a", 500, "refused"), done(f, "b"), done(f, "a")),
  ],
  ["R20", "a breaker stays half-open before work that waits", (f) => (change(f, "half-open", 1), wait(f))],
  [
    "R20",
    "a breaker stays half-open although its probe succeeded",
    (f) => (change(f, "half-open", 1), probe(f), wait(f)),
  ],
  [
    "R20",
    "a breaker stays half-open, because its closing was refused",
    (f) => (change(f, "half-open", 1), probe(f), sent(f, "closed", 0, "fail"), wait(f)),
  ],
];

const FIFO = { fifo: "k" };

function refused(f: Forge): void {
  f.enqueue("a");
  const lease = f.claim("a");
  f.listed(lease);
  f.settle(lease, "retry", { crash: 1, worker: null });
  f.stale(lease, "complete");
}

function claimedSince(f: Forge): void {
  f.enqueue("a");
  f.settle(f.claim("a"), "complete", {}, "unknown");
  f.settle(f.claim("a"), "release");
  gone(f, 9999);
}

function tooYoung(f: Forge): void {
  f.enqueue("a");
  f.settle(f.claim("a"), "complete", {}, "unknown");
  gone(f, 500);
}

/** A prune after this time, and the job is not there any more. */
function gone(f: Forge, ms: number): void {
  f.time += ms;
  prune(f, 1);
  f.jobs.delete("a");
  f.letters.length = 0;
}

function prune(f: Forge, count: number): void {
  f.call("prune", { kept: KEPT }, "ok", { count });
}

function remove(f: Forge, count: number): void {
  const since = f.scribe.write("forger", "remove", "invoke", {});
  const own = f.scribe.write("forger", "remove", "invoke", { job: "a" });
  f.scribe.write("forger", "remove", "ok", { count }, since);
  f.scribe.write("forger", "remove", "ok", { job: "a", count }, own);
}

function change(f: Forge, state: string, count = 0): void {
  f.call("breaker", { service: "media", answer: state, count }, "ok", {});
}

/** A change that is under way, or whose answer is no yes. */
function sent(f: Forge, state: string, count = 0, phase?: "unknown" | "fail"): void {
  const line = { service: "media", answer: state, count };
  const since = f.scribe.write("forger", "breaker", "invoke", line);
  if (phase) f.scribe.write("forger", "breaker", phase, line, since);
}

function served(f: Forge, id: string): void {
  f.enqueue(id);
  f.claim(id, { service: "media" });
}

function probe(f: Forge): void {
  f.enqueue("probe", { service: "media" });
  done(f, "probe", { service: "media" });
}

function wait(f: Forge): void {
  f.enqueue("waits", { service: "media" });
  f.time += 90_000;
}

function twoProbes(f: Forge): void {
  f.scribe.write("forger", "mark", "ok", { answer: "watched", worker: "w" });
  change(f, "half-open", 1);
  for (const id of ["a", "b"]) {
    f.enqueue(id);
    f.scribe.write("forger", "run", "invoke", { ...f.claim(id, { service: "media" }), payloadHash: 7 });
  }
}

function late(f: Forge, enqueued: object, claimed: object = {}): void {
  f.scribe.write("forger", "mark", "ok", { answer: "healthy", delayMs: 1250 });
  f.enqueue("a", enqueued);
  f.time += 2000;
  done(f, "a", claimed);
}

function lateAfter(f: Forge): void {
  two(f);
  f.scribe.write("forger", "mark", "ok", { answer: "healthy", delayMs: 1250 });
  f.time += 3000;
  const lease = f.claim("a", { runAt: f.time });
  f.time += 3000;
  f.settle(lease, "complete");
  f.time += 2000;
  done(f, "b");
}

function lateSuspect(f: Forge): void {
  f.enqueue("a");
  const lease = f.claim("a");
  f.listed(lease);
  f.settle(lease, "retry", { crash: 1, worker: null });
  f.scribe.write("forger", "mark", "ok", { answer: "healthy", delayMs: 1250 });
  f.time += 400_000;
  f.settle(f.claim("a", { worker: "v" }), "complete", { worker: "v" });
}

function two(f: Forge): void {
  f.enqueue("a", FIFO);
  f.time += 10;
  f.enqueue("b", FIFO);
}

function done(f: Forge, id: string, claimed: object = {}): void {
  f.settle(f.claim(id, claimed), "complete");
}

function move(f: Forge, id: string, delayMs: number, answer = "changed"): void {
  f.call("reschedule", { job: id, delayMs }, "ok", { answer });
}

function back(f: Forge): void {
  f.time -= 5000;
  f.scribe.write("forger", "mark", "ok", { answer: "clock_back" });
}
