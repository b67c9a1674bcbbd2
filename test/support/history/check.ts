// The history checker: reads events once, in their order, then the final dump, and reports every rule of the
// guarantees (R1 to R21) that was broken. It knows nothing of the workload. R18 is about stores that fail over; the
// stores here do not.
import { Conservation } from "./conservation.ts";
import type { FinalDump, HistoryEvent, Report } from "./event.ts";
import { checkDump } from "./final.ts";
import { checkStaff, noteTold, onReported, onReturned, onStarted, onWatched } from "./handlers.ts";
import { Holds } from "./holds.ts";
import { InHand } from "./in-hand.ts";
import { Intake } from "./intake.ts";
import { settleDoubts } from "./keys.ts";
import { findRun, Ledger, type Track } from "./ledger.ts";
import { onClaimed, onSettled, onSettleHeard, onSettleSent, onSettleUnheard, onStale } from "./leases.ts";
import { onCancel, onObserved, onRecall, onRedrive, onRemove, onRepair, onReschedule } from "./operations.ts";
import { RedriveRuns } from "./redrive-runs.ts";
import { noteStarted, noteTried, onContact, onExcused, onListed } from "./presence.ts";

/** True for an answer that is given when its write is on disk; one that found nothing to write says nothing. */
function isOnDisk({ op, phase, answer }: HistoryEvent): boolean {
  if (phase !== "ok") return false;
  return op === "settle" || (op === "enqueue" && answer === "created") || (op === "beat" && answer === "alive");
}

/** Checks a whole history. */
export function check(events: Iterable<HistoryEvent>, dump: FinalDump): Report {
  const checker = new Checker();
  for (const event of events) checker.read(event);
  return checker.finish(dump);
}

/** The checker for events that come one by one. */
export class Checker {
  readonly #ledger = new Ledger();
  readonly #intake = new Intake(this.#ledger);
  readonly #holds = new Holds(this.#ledger);
  readonly #conservation = new Conservation(this.#ledger);
  readonly #inHand = new InHand(this.#ledger);
  readonly #redriveRuns = new RedriveRuns(this.#ledger);

  read(event: HistoryEvent): void {
    this.#ledger.totals.events++;
    if (isOnDisk(event)) this.#ledger.crashes.noteWritten(event);
    const own = this.#ledger.staff.get(event.actor);
    if (own !== undefined) this.#ledger.worker(own).actedAt = event.seq;
    if (event.job === null) this.#readGeneral(event);
    else this.#readJob(this.#ledger.track(event.job), event);
  }

  finish(dump: FinalDump): Report {
    checkDump(this.#ledger, this.#conservation, dump);
    checkStaff(this.#ledger, dump);
    this.#holds.finish(dump);
    this.#redriveRuns.finish(dump);
    let jobs = 0;
    for (const track of this.#ledger.jobs.values()) if (track.asked) jobs++;
    return { violations: this.#ledger.violations, jobs, ...this.#ledger.totals };
  }

  #readJob(track: Track, event: HistoryEvent): void {
    switch (event.op) {
      case "enqueue":
        return this.#onEnqueue(track, event);
      case "claim":
        if (event.phase === "ok") this.#onClaimed(track, event);
        return;
      case "run":
        return this.#onRun(track, event);
      case "report":
        return onReported(this.#ledger, track, event);
      case "settle":
        return this.#onSettle(track, event);
      case "expired":
        if (event.phase === "ok") this.#onListed(track, event);
        return;
      case "cancel":
        return onCancel(this.#ledger, track, event);
      case "redrive":
        this.#redriveRuns.onSent(event);
        return onRedrive(this.#ledger, track, event);
      case "recall":
        this.#redriveRuns.onRecalled(event);
        return onRecall(this.#ledger, track, event);
      case "repair":
        return onRepair(track, event);
      case "reschedule":
        return onReschedule(track, event);
      case "observe":
        return onObserved(this.#ledger, track, event, this.#conservation);
      case "remove":
        return onRemove(track, event);
    }
  }

  #readGeneral(event: HistoryEvent): void {
    switch (event.op) {
      case "claim":
        return this.#onClaim(event);
      case "register":
      case "beat":
        return onContact(this.#ledger, event);
      case "gone":
      case "leave":
        return onExcused(this.#ledger, event);
      case "prune":
        this.#intake.onPrune(event);
        return this.#conservation.onPurge(event);
      case "remove":
        return this.#conservation.onPurge(event);
      case "count":
        return this.#conservation.onCount(event);
      case "record":
      case "redrive":
        return this.#redriveRuns.onRecord(event);
      case "breaker":
        return this.#holds.breakers.onChange(event);
      case "mark":
        return this.#onMark(event);
    }
  }

  #onMark(event: HistoryEvent): void {
    switch (event.answer) {
      case "healthy":
        return this.#holds.onHealthy(event);
      case "clock_steps_back":
      case "clock_back":
        this.#ledger.clockBackAt = event.seq;
        this.#ledger.clockSteps = event.answer === "clock_steps_back";
        return;
      case "may_hold":
        return this.#inHand.onMayHold(event);
      case "judging":
        this.#ledger.judging.set(event.actor, event);
        return;
      case "server is killed":
      case "server is gone":
        return this.#ledger.crashes.onMark(this.#ledger, event);
      case "watched":
      case "stopping":
      case "ended":
        return onWatched(this.#ledger, event);
    }
  }

  #onEnqueue(track: Track, event: HistoryEvent): void {
    if (event.phase === "invoke") this.#conservation.onAsked(track);
    if (event.phase === "ok" && event.answer === "created") {
      this.#conservation.onCreated();
      this.#holds.onEnqueued(track, event);
    }
    this.#intake.onEnqueue(event);
  }

  /** The claim as a whole: while it is open its nonce may be anywhere. */
  #onClaim(event: HistoryEvent): void {
    if (event.nonce === null) return;
    if (event.phase === "invoke") {
      this.#ledger.openNonces.add(event.nonce);
      if (event.worker === null) return;
      noteTried(this.#ledger.worker(event.worker), event);
    } else if (event.phase !== "unknown") {
      this.#ledger.openNonces.delete(event.nonce);
      if (event.phase === "ok" && event.answer === "taken") noteStarted(this.#ledger, event);
      if (event.phase === "ok" && event.answer === "worker") noteTold(this.#ledger, event);
    }
  }

  #onClaimed(track: Track, event: HistoryEvent): void {
    this.#intake.onRun(track, event);
    settleDoubts(this.#ledger, track, event.epoch, event.since);
    this.#inHand.onClaimed(track, event);
    const run = onClaimed(this.#ledger, track, event);
    if (run !== undefined) this.#holds.onClaimed(track, run, event);
  }

  #onListed(track: Track, event: HistoryEvent): void {
    // Nobody was told of this claim, so nobody can say when it was made.
    settleDoubts(this.#ledger, track, event.epoch, 0);
    this.#inHand.onOver(track, event.worker, event.epoch);
    onListed(this.#ledger, track, event);
  }

  #onRun(track: Track, event: HistoryEvent): void {
    if (event.phase !== "invoke") return onReturned(this.#ledger, track, event);
    this.#intake.onRun(track, event);
    onStarted(this.#ledger, track, event);
    this.#holds.breakers.onStarted(track, findRun(track, event.epoch), event.since);
  }

  /** The worker whose run it was is not named where another one settles it. */
  #onOver(track: Track, { worker, epoch }: HistoryEvent): void {
    this.#inHand.onOver(track, worker ?? findRun(track, epoch)?.worker ?? null, epoch);
  }

  #onSettle(track: Track, event: HistoryEvent): void {
    if (event.phase === "invoke") {
      if (event.worker !== null) noteTried(this.#ledger.worker(event.worker), event);
      return onSettleSent(this.#ledger, track, event);
    }
    if (event.phase !== "unknown") onSettleHeard(track, event);
    const isWritten = event.phase === "ok" && event.answer !== "progress";
    if (isWritten || event.answer === "lease_lost") this.#onOver(track, event);
    if (event.phase === "ok") {
      if (!track.asked) this.#ledger.flag("R3", "settled although nobody enqueued it", track.id);
      return onSettled(this.#ledger, track, event);
    }
    // Nothing that is said on the way can end a run.
    if (event.answer === "progress") return onSettleUnheard(track, event);
    if (event.phase === "fail" && event.answer === "lease_lost") return onStale(this.#ledger, track, event);
    const run = findRun(track, event.epoch);
    const ours = run !== undefined && this.#ledger.mayHold(run, event.nonce);
    if (event.phase === "fail") {
      if (ours) run.tries--;
      return;
    }
    this.#ledger.totals.ambiguous++;
    if (ours) run.lostAck = true;
  }
}
