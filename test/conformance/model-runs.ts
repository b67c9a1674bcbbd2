// What must hold for redrive runs at any time, beside a real count of their letters.
import type { DeadLetter, Job } from "../../src/core/job.ts";
import type { RedriveCounts } from "../../src/store/store.ts";

/** The part of a store's contents that runs are about. */
interface Runs {
  readonly jobs: readonly Job[];
  readonly deadLetters: readonly DeadLetter[];
  readonly redrives: readonly RedriveCounts[];
}

/** The first runs and other ends that were counted. */
function ended({ good, same, other, cancelled, gone, recalled }: RedriveCounts): number {
  return good + same + other + cancelled + gone + recalled;
}

/**
 * What is wrong with the counts of runs. Pending are the letters without an outcome; those whose job has completed under
 * a program of version 1 are counted by none, and stay pending when they are deleted.
 */
export function miscountedRuns(before: Runs, after: Runs): string[] {
  const found: string[] = [];
  for (const counts of after.redrives) {
    const { id, sent, good, same, other, recovered, dead } = counts;
    const own = (of: Runs): DeadLetter[] => of.deadLetters.filter(({ redrive }) => redrive === id);
    const pending = own(after).filter(({ outcome }) => outcome === null).length;
    const was = before.redrives.find((each) => each.id === id);
    const known = new Set(own(after).map(({ job, generation }) => `${job.id} ${generation}`));
    const lost = own(before).filter(({ job, generation, outcome }) => {
      return outcome === null && job.state === "completed" && !known.has(`${job.id} ${generation}`);
    }).length;
    const wasPending = own(before).filter(({ outcome }) => outcome === null).length;
    const [left, wasLeft] = [sent - ended(counts) - pending, was ? was.sent - ended(was) - wasPending : 0];
    if (left !== wasLeft + lost)
      found.push(`${id} sent ${sent}, ${ended(counts)} ended, ${pending} are pending, ${lost} lost`);
    if (was && (sent < was.sent || ended(counts) < ended(was))) found.push(`${id} lost counts`);
    if (recovered > same + other || dead > same + other) found.push(`${id} ended more failing jobs than it had`);
    const completed = own(after).filter(({ outcome }) => outcome === "completed").length;
    if (completed > good + recovered)
      found.push(`${id} has ${completed} completed letters, ${good + recovered} counted`);
  }
  found.push(...mistold(after));
  return found;
}

/** What is wrong with outcomes: only letters that were sent back have one, and it fits the job while it is in that generation. */
function mistold({ deadLetters }: Runs): string[] {
  return deadLetters.flatMap(({ job, generation, redrivenAt, redrive, outcome }) => {
    const name = `${job.id} (${generation})`;
    if (redrivenAt === null && (outcome !== null || redrive !== null))
      return [`${name} was not sent and has ${outcome}`];
    if (outcome === null || outcome === "recalled" || job.generation !== generation + 1) return [];
    const isOpen = job.state === "queued" || job.state === "running";
    // A program of version 1 may have ended it later.
    return isOpen && outcome !== "failing" ? [`${name} is ${job.state} and told to be ${outcome}`] : [];
  });
}
