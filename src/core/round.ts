// The wait between the rounds of `redrive batch`: what failed waits longer than any round takes, and the run makes it due when
// nothing of its round is left. To people it is no time but the next round.

/** The prefix of the job types of batch runs. */
export const BATCH_TYPE = "batch:";
/** How long what failed in a round waits at most: until a run goes on that was left alone. */
export const NEXT_ROUND_MS = 7 * 86_400_000;

const DAY_MS = 86_400_000;

/** True for a wait of a job of this type that stands for the next round. */
export function isNextRound(type: string, waitMs: number): boolean {
  return type.startsWith(BATCH_TYPE) && waitMs > DAY_MS && waitMs <= NEXT_ROUND_MS;
}
