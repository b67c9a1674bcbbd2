// Plays many seeds and adds up what came of them. Shared by the test command and by `npm run prove`.
import type { Report, Violation } from "../support/history/event.ts";
import { replayOf, type Simulation, simulate, type StoreName } from "./simulate.ts";

/** A seed that broke a rule, or ended in an error. */
export interface BadSeed {
  readonly store: StoreName;
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly error: unknown;
}

/** The sum of many seeds. */
export interface Sweep {
  readonly totals: Omit<Report, "violations"> & { crashes: number; pauses: number; virtualMs: number };
  readonly bad: readonly BadSeed[];
  readonly seeds: number;
  readonly seconds: number;
}

const NOTHING = {
  events: 0,
  jobs: 0,
  lost: 0,
  doubleAcked: 0,
  staleRefused: 0,
  extraRuns: 0,
  ambiguous: 0,
  takenBack: 0,
  crashes: 0,
  pauses: 0,
  virtualMs: 0,
};

/** Plays these seeds one after the other; a bad one does not stop the rest. */
export async function sweep(store: StoreName, seeds: Iterable<number>, more: Partial<Simulation> = {}): Promise<Sweep> {
  const totals = { ...NOTHING };
  const bad: BadSeed[] = [];
  const from = performance.now();
  let count = 0;
  for (const seed of seeds) {
    count++;
    try {
      const { report, crashes, pauses, virtualMs } = await simulate({ ...more, store, seed });
      const { violations, ...numbers } = report;
      const all = { ...numbers, crashes, pauses, virtualMs };
      for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] += all[name];
      if (violations.length > 0) bad.push({ store, seed, violations, error: null });
    } catch (error) {
      bad.push({ store, seed, violations: [], error });
    }
  }
  return { totals, bad, seeds: count, seconds: (performance.now() - from) / 1000 };
}

/** What is wrong with a seed, and the command that plays it again. */
export function explain({ store, seed, violations, error }: BadSeed): string {
  const lines = violations
    .slice(0, 5)
    .map(({ rule, message, job }) => `  ${rule} ${job === null ? "" : `job ${job}: `}${message}`);
  if (violations.length > lines.length) lines.push(`  and ${violations.length - lines.length} more`);
  if (error !== null) lines.push(`  ${error instanceof Error ? error.stack : JSON.stringify(error)}`);
  return [`Seed ${seed} on ${store} broke the guarantees. To see it again: ${replayOf(store, seed)}`, ...lines].join(
    "\n",
  );
}

/** The report line. */
export function summary(store: string, { totals, seeds, seconds }: Sweep): string {
  const parts = [
    `${seeds} seeds`,
    `${totals.jobs} jobs`,
    `${totals.crashes} crashes`,
    `${totals.lost} lost`,
    `${totals.doubleAcked} double-acked`,
    `${totals.staleRefused} stale refused`,
    `${totals.extraRuns} extra runs`,
    `${totals.ambiguous} ambiguous`,
    `${seconds.toFixed(1)} s`,
  ];
  return `${store.padEnd(7)} ${parts.join(", ")}`;
}
