// What must hold for the letters that redrive runs send, whatever their drivers and operators do meanwhile.
import type { DeadLetter } from "../../src/core/job.ts";
import { RUN_CELLS, type RedriveRun, runFrom } from "../../src/core/recovery/run.ts";
import type { Cell, RedriveCounts } from "../../src/store/store.ts";

/** The part of a store's contents that sends are about. */
interface Sends {
  readonly deadLetters: readonly DeadLetter[];
  readonly redrives: readonly RedriveCounts[];
  readonly cells: readonly Cell[];
}

const nameOf = ({ job, generation }: DeadLetter): string => `${job.id} (${generation})`;

/** The runs that programs have started, as their records say. */
export function drivenRuns(cells: readonly Cell[]): RedriveRun[] {
  return cells.flatMap(({ kind, name, value }) => {
    const run = kind === RUN_CELLS && name !== "" ? runFrom(value) : null;
    return run ? [run] : [];
  });
}

/** What is wrong with the sends between two moments. */
export function wrongSends(before: Sends, after: Sends): string[] {
  const found: string[] = [];
  const was = new Map(drivenRuns(before.cells).map((run) => [run.id, run]));
  const known = new Set(before.deadLetters.flatMap((letter) => letter.redrive ?? []).concat([...was.keys()]));
  for (const { id, sent } of after.redrives) {
    const sentBefore = before.redrives.find((each) => each.id === id)?.sent ?? 0;
    const own = (of: Sends): DeadLetter[] => of.deadLetters.filter(({ redrive }) => redrive === id);
    const old = new Set(own(before).map(nameOf));
    const fresh = own(after).filter((letter) => !old.has(nameOf(letter)));
    if (sent - sentBefore !== fresh.length)
      found.push(`${id} counts ${sent - sentBefore} sent, ${fresh.length} letters were`);
    const wasLive = new Set(before.deadLetters.filter(({ redrivenAt }) => redrivenAt === null).map(nameOf));
    for (const letter of known.has(id) ? fresh : [])
      if (!wasLive.has(nameOf(letter))) found.push(`${id} sent ${nameOf(letter)}, which did not wait for it`);
    const startedAt = drivenRuns(after.cells).find((run) => run.id === id)?.startedAt ?? Number.POSITIVE_INFINITY;
    for (const letter of fresh)
      if (letter.diedAt > startedAt) found.push(`${id} sent ${nameOf(letter)}, which died after its start`);
  }
  for (const run of drivenRuns(after.cells)) {
    const earlier = was.get(run.id);
    const sentOf = (of: Sends): number => of.redrives.find(({ id }) => id === run.id)?.sent ?? 0;
    // No command resumes a run and drives it too.
    const isStill = earlier !== undefined && earlier.state !== "running";
    if (isStill && sentOf(after) !== sentOf(before)) found.push(`${run.id} was ${earlier.state} and has sent more`);
    if (earlier?.state !== "completed" && run.state === "completed") found.push(...unsent(run, after));
  }
  return found;
}

/**
 * Letters of a run that is complete and has not sent them. Letters with a key may have been superseded meanwhile, and what
 * was recalled died anew; other selections than by type change while a run goes on.
 */
function unsent(run: RedriveRun, { deadLetters }: Sends): string[] {
  const { type, limit, ids } = run.selection;
  if (type === undefined || limit !== undefined || ids || run.misfits.length > 0) return [];
  const recalled = new Set(deadLetters.flatMap((letter) => (letter.outcome === "recalled" ? [letter.job.id] : [])));
  return deadLetters.flatMap((letter) => {
    const { job, redrivenAt, diedAt } = letter;
    const isOurs = redrivenAt === null && job.type === type && job.key === null && diedAt < run.startedAt;
    return isOurs && !recalled.has(job.id) ? [`${run.id} is complete and has not sent ${nameOf(letter)}`] : [];
  });
}
