// The evening of the bad day: the person on call looks at the causes, sends the letters of a bug back as a canary, sees it stop by
// itself, deploys the fix and sends them again. Everything is done as a person would do it, by plan and start.
import type { Redrive, RedriveRunView } from "redrive";
import { counted } from "../kit/words.ts";
import type { Crew } from "./crew.ts";
import { BROKEN_TYPE, FIXED_RELEASE } from "./jobs.ts";
import type { News } from "./news.ts";

/** What the two redrives did. */
export interface Evening {
  /** Letters of the bug. */
  readonly letters: number;
  /** The run before the fix. */
  readonly before: Pick<RedriveRunView, "id" | "state" | "counts">;
  /** The run after it. */
  readonly after: Pick<RedriveRunView, "id" | "state" | "counts">;
}

/** What the evening works with. */
export interface EveningOptions {
  readonly redrive: Redrive;
  readonly crew: Crew;
  readonly news: News;
  /** Ends the evening at once. */
  readonly signal: AbortSignal;
}

/** The canary, and the letters a second, for a handful of letters. */
const CANARY = [1, 2];
const RATE = 20;

/** Redrives the letters of the bug before and after its fix; null where the day had none of them. */
export async function spendEvening({ redrive, crew, news, signal }: EveningOptions): Promise<Evening | null> {
  const { causes } = await redrive.deadLetters.stats({ type: BROKEN_TYPE, class: "validation" });
  const [cause] = causes;
  if (!cause) return null;
  const { fingerprint, count } = cause;
  const run = async (why: string): Promise<RedriveRunView> => {
    const plan = await redrive.redrives.plan({ fingerprint });
    const { id } = await redrive.redrives.start(plan.id, { canary: CANARY, rate: RATE, why });
    return redrive.redrives.follow(id, { signal });
  };
  news.tell(
    "info",
    `evening: ${counted(count, "letter")} of one cause go back to work, ${CANARY[0]} first as a canary`,
  );
  const before = await run("is it really broken?");
  const { sent, left } = before.counts;
  news.tell(
    "wait",
    `the redrive ${before.state} by itself after ${sent} of ${count}: the bug is still there, ${left} untouched`,
  );
  await crew.replace(FIXED_RELEASE);
  news.tell("info", `release ${FIXED_RELEASE} with the fix replaces all workers`);
  const after = await run(`fixed in ${FIXED_RELEASE}`);
  news.tell(
    "good",
    `the redrive ${after.state}: ${after.counts.completed} of ${count} completed, at most ${RATE} a second`,
  );
  return { letters: count, before, after };
}
