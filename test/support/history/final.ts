// Compares the history with what the store was found to hold: nothing lost (R1), nothing double (R2, R13), letters in
// step (R8), every state explained by somebody's doing (R6, R7, R9, R14, R17), everything come to its end (R15).
import { checkCharges, tallyBefore } from "./charges.ts";
import type { Conservation } from "./conservation.ts";
import type { FinalDump, FinalJob } from "./event.ts";
import { mayHaveBody, settleDoubtsFound } from "./keys.ts";
import { END, findRun, type Ledger, type Track } from "./ledger.ts";

/** Goes over the dump once and over all tracks once. */
export function checkDump(ledger: Ledger, conservation: Conservation, dump: FinalDump): void {
  const owners = new Map<string, string>();
  const dead = new Map<string, number>();
  for (const job of dump.jobs) {
    const track = ledger.jobs.get(job.id);
    if (track === undefined || !track.asked) {
      ledger.flag("R3", "found although nobody enqueued it", job.id);
      continue;
    }
    if (++track.found > 1) ledger.flag("R2", "found twice", job.id);
    checkKey(ledger, track, job, owners);
    checkJob(ledger, track, job);
    checkEnded(ledger, track, job, dump);
    if (job.state === "dead") dead.set(job.id, job.generation);
  }
  checkLetters(ledger, dump, dead);
  checkMissing(ledger, conservation);
  for (const worker of dump.workers) {
    if (dump.drained && worker.running > 0 && worker.leaseEnd < dump.storeTime) {
      ledger.flag("R15", `worker ${worker.id} still holds ${worker.running} runs under an expired lease`, null);
    }
  }
}

function checkKey(ledger: Ledger, track: Track, job: FinalJob, owners: Map<string, string>): void {
  if (!mayHaveBody(ledger, track, job.payloadHash, Number.POSITIVE_INFINITY)) {
    ledger.flag("R3", "found with another payload than was enqueued", job.id);
  }
  settleDoubtsFound(ledger, track, job.epoch);
  if (job.key === null || track.mode !== null) return;
  const owner = owners.get(job.key);
  if (owner === undefined) {
    owners.set(job.key, job.id);
    return;
  }
  const unsure = track.unsure || ledger.jobs.get(owner)?.unsure;
  ledger.flag(unsure ? "R2" : "R13", `found beside ${owner} under one key`, job.id);
}

function checkJob(ledger: Ledger, track: Track, job: FinalJob): void {
  const last = findRun(track, track.topEpoch);
  const mayBeBack = job.epoch === track.topEpoch - 1 && last !== undefined;
  if (mayBeBack) ledger.crashes.takeBack(ledger, track, last, { seq: Number.POSITIVE_INFINITY });
  if (job.epoch < track.topEpoch)
    ledger.flag("R6", `found at epoch ${job.epoch} after claim ${track.topEpoch}`, job.id);
  if (job.generation > 1 + track.redriveTried) {
    const rule = track.redriveTried === 0 ? "R9" : "R14";
    ledger.flag(rule, `found in generation ${job.generation}, redriven was ${track.redriveTried} at most`, job.id);
  }
  if (track.final !== null && job.state !== track.final) {
    ledger.flag("R9", `found ${job.state} although it was ${track.final}`, job.id);
  }
  const run = findRun(track, job.epoch);
  const from = job.state === "running" ? job.epoch : job.epoch + 1;
  checkCharges(ledger, track, job, tallyBefore(track, from, job.generation), "found");
  if (run === undefined) {
    const unexplained = job.epoch > 0 && track.base === null && (job.state === "completed" || job.state === "dead");
    if (unexplained) ledger.flag("R9", `found ${job.state} by run ${job.epoch}, which nobody ended`, job.id);
    else if (job.epoch === 0 && (job.state === "completed" || job.state === "dead" || job.state === "running")) {
      ledger.flag("R9", `found ${job.state} although it was never claimed`, job.id);
    } else if (job.state === "cancelled" && track.cancels === 0) {
      ledger.flag("R9", "found cancelled although nobody cancelled it", job.id);
    }
    return;
  }
  if (!explains(track, run.end !== 0 ? run.end : run.tried, job, run.generation)) {
    const lost = run.lostAck && run.end === 0 && (run.tried & END.complete) !== 0;
    const rule = lost && job.state !== "running" ? "R17" : "R9";
    ledger.flag(rule, `found ${job.state}, which no end of run ${run.epoch} explains`, job.id);
  }
}

/** Whether one of these ends of the last run leaves a job in the state it was found in. */
function explains(track: Track, ends: number, job: FinalJob, generation: number): boolean {
  if (job.generation !== generation && generation !== -1) {
    const later = (ends & END.dead) !== 0 && job.generation <= 1 + track.redriveTried;
    const isRecalled = job.state === "dead" && track.recallTried.includes(job.generation);
    return later && (job.state === "queued" || isRecalled || (job.state === "cancelled" && track.cancels > 0));
  }
  switch (job.state) {
    case "completed":
      return (ends & END.complete) !== 0;
    case "dead":
      return (ends & END.dead) !== 0;
    case "cancelled":
      return (ends & END.cancel) !== 0 || ((ends & (END.retry | END.release)) !== 0 && track.cancels > 0);
    case "queued":
      return (ends & (END.retry | END.release)) !== 0;
    default:
      return findRun(track, job.epoch)?.end === 0;
  }
}

function checkEnded(ledger: Ledger, track: Track, job: FinalJob, dump: FinalDump): void {
  if (!dump.drained || job.state === "completed" || job.state === "dead" || job.state === "cancelled") return;
  const run = findRun(track, job.epoch);
  if (job.state === "running" && run?.lostAck && (run.tried & END.complete) !== 0) {
    ledger.flag("R17", `the answer to run ${job.epoch} was lost, and it neither counted nor ran again`, job.id);
  }
  const late = job.state === "queued" ? `, due for ${dump.storeTime - job.runAt} ms` : "";
  ledger.flag("R15", `still ${job.state} after everything healed${late}`, job.id);
}

function checkLetters(ledger: Ledger, dump: FinalDump, dead: ReadonlyMap<string, number>): void {
  const open = new Map<string, number>();
  const seen = new Set<string>();
  for (const letter of dump.letters) {
    const name = `${letter.job}/${letter.generation}`;
    if (seen.has(name)) ledger.flag("R8", `two dead letters of generation ${letter.generation}`, letter.job);
    seen.add(name);
    if (letter.redriven) continue;
    open.set(letter.job, (open.get(letter.job) ?? 0) + 1);
    if (dead.get(letter.job) !== letter.generation) {
      ledger.flag("R8", `a dead letter of generation ${letter.generation}, but the job is not dead in it`, letter.job);
    }
  }
  for (const [job, generation] of dead) {
    const letters = open.get(job) ?? 0;
    if (letters !== 1) ledger.flag("R8", `dead in generation ${generation} with ${letters} dead letters`, job);
  }
}

function checkMissing(ledger: Ledger, conservation: Conservation): void {
  let gone = 0;
  let maybe = 0;
  for (const track of ledger.jobs.values()) {
    if (track.found > 0 || !track.asked) continue;
    if (track.ackedAt === 0) {
      maybe++;
      continue;
    }
    if (conservation.mayBePurged(track)) {
      gone++;
      continue;
    }
    ledger.totals.lost++;
    const how = track.terminalTried ? "purged before its time" : "lost";
    ledger.flag("R1", `confirmed, but ${how}`, track.id);
    if (track.unsure && track.key !== null) ledger.flag("R2", "repeated until confirmed, but there is none", track.id);
  }
  conservation.finish(gone, maybe);
}
