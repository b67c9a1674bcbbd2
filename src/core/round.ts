// The wait between the rounds of `redrive batch`. A failed item waits longer than any round takes, and the run makes it
// due when its round is finished. Output shows it as "next round", not as a time.

/** The prefix of the job types of batch runs. */
export const BATCH_TYPE = "batch:";
/** The longest wait of a failed item: until an abandoned run is continued. */
export const NEXT_ROUND_MS = 7 * 86_400_000;

const DAY_MS = 86_400_000;

/** True for a wait that means the next round, for a job of this type. */
export function isNextRound(type: string, waitMs: number): boolean {
  return type.startsWith(BATCH_TYPE) && waitMs > DAY_MS && waitMs <= NEXT_ROUND_MS;
}
