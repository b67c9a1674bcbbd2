// Groups: jobs of one type that share a name, of which at most so many hold a place at the same time. With a
// concurrency of 1 they run one after the other: a job keeps its place while it waits for its next attempt, so that no
// other job overtakes it. With more, a job holds a place only while it runs.
import type { Belonging, Job } from "./job.ts";

/** The bounds of `groupConcurrency`. */
export const GROUP_CONCURRENCY = { least: 1, most: 10_000 } as const;

/** A job that holds a place. */
export interface Holder {
  /** The lane it is in. */
  readonly lane: number;
  /** It waits for its next attempt. */
  readonly waits: boolean;
}

/** What a lane of a group may give: so many jobs, or only the one that holds the place and waits for a retry. */
export function groupRoom<H extends Holder>(concurrency: number, holders: readonly H[], lane: number): number | H {
  const [first] = holders;
  const isItsTurn = concurrency === 1 && holders.length === 1 && first?.waits === true && first.lane === lane;
  return isItsTurn ? first : Math.max(0, concurrency - holders.length);
}

/** True if a job of this lane keeps its place when it goes back to the queue. */
export function keepsPlace({ groupConcurrency }: Pick<Belonging, "groupConcurrency">): boolean {
  return groupConcurrency === 1;
}

/** The jobs whose places keep a waiting job of a group from starting; none if there is room. */
export function heldByGroup(job: Job, holders: readonly Job[]): readonly Job[] {
  const others = holders.filter(({ id }) => id !== job.id);
  return others.length >= (job.groupConcurrency ?? Number.POSITIVE_INFINITY) ? others : [];
}

/** What the jobs before it say of a job that waits in its group, for people. */
export function beforeText({ group }: Pick<Belonging, "group">, before: readonly Pick<Job, "id">[]): string {
  const [first] = before;
  if (before.length === 1 && first) return `job ${first.id} of its group ${group} is before it`;
  return `all ${before.length} places of its group ${group} are taken`;
}

/** A map key for the group of a lane or job; a type contains no space. */
export function groupName({ type, group }: Pick<Belonging, "type" | "group">): string {
  return `${type} ${group ?? ""}`;
}
