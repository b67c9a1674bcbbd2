// Decides what undo makes of a job: the payload that its producer sent last, as long as no run has got a later one.
//
//   versions of the job               the job                        undo
//   none, or the last is the first    any                            nothing to undo
//   the last is of the producer       any                            refused: it would lose what the producer sent
//   the last is a repair              dead, or sent and not taken    the last payload of the producer
//   the last is a repair              was taken since                refused: a run has got it
import type { Job, LetterOutcome } from "../job.ts";

/** What undo looks at of a payload that the job had. */
export interface UndoVersion {
  readonly payload: string;
  /** When the job got it. */
  readonly at: number;
  /** The first generation whose runs get it; null where a program of schema version 2 wrote it. */
  readonly generation: number | null;
  /** Both are null where the producer has sent it. */
  readonly actor: string | null;
  readonly redrive: string | null;
}

/** What undo looks at of a death. */
export interface UndoLetter {
  readonly generation: number;
  /** When the job died; a recall keeps the time of the death before. */
  readonly diedAt: number;
  readonly outcome: LetterOutcome | null;
}

/** What undo does: the payload that it writes, or why it writes none. */
export type Undo = { readonly payload: string } | { readonly refused: "nothing" | "replaced" | "state" | "taken" };

/**
 * Decides it from the versions, the first one first, and the letters of the job. Whether a worker has taken a job that
 * waits now is for the store to see, in the commit that recalls it.
 */
export function undoOf(
  job: Pick<Job, "state" | "generation" | "payload">,
  versions: readonly UndoVersion[],
  letters: readonly UndoLetter[],
): Undo {
  const last = versions.at(-1);
  const sent = versions.findLast(({ actor, redrive }) => actor === null && redrive === null);
  if (!last || !sent) return { refused: "nothing" };
  // A program of an older version replaces a payload without a version of its own.
  if (job.payload !== last.payload) return { refused: "replaced" };
  if (last === sent) return { refused: versions.length === 1 ? "nothing" : "replaced" };
  if (last.payload === sent.payload) return { refused: "nothing" };
  if (job.state !== "dead" && job.state !== "queued") return { refused: "state" };
  const through = job.state === "dead" ? job.generation : job.generation - 1;
  for (let generation = firstWith(last, letters); generation <= through; generation++) {
    const death = letters.find((letter) => letter.generation === generation - 1);
    if (death?.outcome !== "recalled") return { refused: "taken" };
  }
  return { payload: sent.payload };
}

/** The first generation whose runs get the payload: the one after the death that the repair saw. */
function firstWith({ generation, at }: UndoVersion, letters: readonly UndoLetter[]): number {
  if (generation !== null) return generation;
  return 1 + Math.max(0, ...letters.filter(({ diedAt }) => diedAt <= at).map((letter) => letter.generation));
}
