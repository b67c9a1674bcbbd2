// What became of jobs that were sent back to work, in memory: the outcomes of their letters, and the counts of redrive runs.
import { outcomeAfter, REDRIVE_SUMS, type RedrivenEnd, type RedriveSums } from "../../core/recovery/outcome.ts";
import { NO_SUMS, type RedriveChanges, redriveTickOf } from "../dead-letters.ts";
import type { DeathRow, RedriveTickRow, Row, Tables } from "./tables.ts";

/** The letter of a generation of a job. */
export function letterOf({ deaths }: Tables, id: string, generation: number): DeathRow | undefined {
  return deaths.find((death) => death.jobId === id && death.generation === generation);
}

/** Tells the letter of the generation before what became of a job that was sent back to work. */
export function tellLetter(tables: Tables, row: Row, failed: RedrivenEnd["failed"], runs: RedriveChanges): void {
  const death = letterOf(tables, row.id, row.generation - 1);
  if (!death) return;
  const { state } = row;
  const change = outcomeAfter({ outcome: death.outcome, fingerprint: death.failure.fingerprint }, { state, failed });
  if (!change) return;
  runs.add(death.redrive, change.counts);
  Object.assign(death, { outcome: change.outcome, outcomeAt: tables.clock() });
}

/** Counts the jobs that redrive runs have sent and that are deleted before an outcome was known. */
export function countGone({ deaths }: Tables, row: Row, runs: RedriveChanges): void {
  if (row.state === "completed") return;
  for (const { jobId, redrive, outcome } of deaths)
    if (jobId === row.id && outcome === null) runs.add(redrive, { gone: 1 });
}

/** Adds what one write has changed. */
export function countRuns(tables: Tables, runs: RedriveChanges, holder: string): void {
  const at = redriveTickOf(tables.clock());
  for (const [redrive, sums] of runs.all()) addRunTick(tables, { redrive, at, holder, ...sums });
}

/** Adds what a holder has counted of a run. */
export function addRunTick({ redriveTicks }: Tables, row: RedriveTickRow): void {
  addCounts(redriveTicks, [row.redrive, row.at, row.holder], row, REDRIVE_SUMS);
}

/** Adds a row to the one of its name, if there is one. */
export function addCounts<K extends string, T extends Record<K, number>>(
  rows: Map<string, T>,
  name: readonly unknown[],
  row: T,
  counts: readonly K[],
): void {
  const key = JSON.stringify(name);
  const known: Record<K, number> | undefined = rows.get(key);
  if (known) for (const count of counts) known[count] += row[count];
  else rows.set(key, { ...row });
}

/** The sums of sums. */
export function total(all: readonly RedriveSums[]): RedriveSums {
  const sum = (count: keyof RedriveSums): number => all.reduce((so, each) => so + each[count], 0);
  return { ...NO_SUMS, ...Object.fromEntries(REDRIVE_SUMS.map((count) => [count, sum(count)])) };
}
