// What a job must have been charged (R7): attempts and crashes as far as confirmed and possible ends of its runs tell.
// Where an answer is missing the truth lies in a range, and every claim that was answered makes it exact again.
import type { Ledger, Run, Tally, Track } from "./ledger.ts";

/** The counters a job must show when the run of this epoch and generation begins. */
export function tallyBefore(track: Track, epoch: number, generation: number): Tally {
  const tally = copyOf(track.base);
  for (const run of track.runs) {
    if (run.epoch >= epoch) break;
    skipTo(tally, run.epoch);
    addRun(tally, run);
  }
  const unseen = epoch - tally.epoch - 1;
  if (generation !== tally.generation && tally.generation !== -1) {
    return { epoch, generation, attemptsLeast: 0, attemptsMost: unseen, crashesLeast: 0, crashesMost: unseen };
  }
  skipTo(tally, epoch);
  return tally;
}

/** The counters after the oldest kept run, before it is forgotten. */
export function foldOldest(track: Track, oldest: Run): Tally {
  const tally = copyOf(track.base);
  skipTo(tally, oldest.epoch);
  addRun(tally, oldest);
  return tally;
}

/** Compares what a job shows with what it must show. */
export function checkCharges(
  ledger: Ledger,
  track: Track,
  seen: { readonly attempts: number; readonly crashes: number; readonly maxAttempts: number },
  tally: Tally,
  where: string,
): void {
  const { attempts, crashes, maxAttempts } = seen;
  if (attempts < tally.attemptsLeast || attempts > tally.attemptsMost) {
    const due = range(tally.attemptsLeast, tally.attemptsMost);
    ledger.flag("R7", `${where} with ${attempts} attempts, charged were ${due}`, track.id);
  }
  if (crashes < tally.crashesLeast || crashes > tally.crashesMost) {
    const due = range(tally.crashesLeast, tally.crashesMost);
    ledger.flag("R7", `${where} with ${crashes} crashes, charged were ${due}`, track.id);
  }
  if (maxAttempts >= 0 && attempts > maxAttempts) {
    ledger.flag("R7", `${where} with ${attempts} attempts, allowed are ${maxAttempts}`, track.id);
  }
}

function range(least: number, most: number): string {
  return least === most ? String(least) : `${least} to ${most}`;
}

function copyOf(base: Tally | null): Tally {
  if (base !== null) return { ...base };
  return { epoch: 0, generation: -1, attemptsLeast: 0, attemptsMost: 0, crashesLeast: 0, crashesMost: 0 };
}

/** Runs nobody saw may each have been charged once. */
function skipTo(tally: Tally, epoch: number): void {
  const unseen = epoch - tally.epoch - 1;
  tally.attemptsMost += unseen;
  tally.crashesMost += unseen;
  tally.epoch = epoch - 1;
}

function addRun(tally: Tally, run: Run): void {
  if (run.generation !== -1) tally.generation = run.generation;
  if (run.attempts !== -1) {
    tally.attemptsLeast = tally.attemptsMost = run.attempts;
    tally.crashesLeast = tally.crashesMost = run.crashes;
  }
  const guess = run.end === 0 && run.tries === 0 && run.tried === 0;
  tally.attemptsLeast += guess ? 0 : run.chargeLeast;
  tally.attemptsMost += guess ? 1 : run.chargeMost;
  tally.crashesLeast += guess ? 0 : run.crashLeast;
  tally.crashesMost += guess ? 1 : run.crashMost;
  tally.epoch = run.epoch;
}
