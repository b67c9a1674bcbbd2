// Detects shortened ids. A store finds a job only by its whole id, because a search by prefix would read all jobs; the
// message says so.
import { isRedriveError, RedriveError } from "../core/errors.ts";
import type { Session } from "./session.ts";

const WHOLE = "00000000-0000-0000-0000-000000000000";

/** True for the beginning of an id, as copied from a cut table cell. */
function isPart(id: string): boolean {
  return (
    id.length < WHOLE.length && /^[0-9a-f]{4}/.test(id) && id.replace(/[0-9a-f]/g, "0") === WHOLE.slice(0, id.length)
  );
}

function hint(session: Session): string {
  return `pass the whole id; \`${session.suggest("jobs list --json")}\` shows it`;
}

/** Says on stderr that an id which was not found looks like the beginning of one. */
export function hintAtWholeIds(session: Session, ids: readonly string[]): void {
  const part = ids.find(isPart);
  if (part !== undefined) session.say(`${part} looks like the beginning of an id: ${hint(session)}.`);
}

/** How many of the named jobs a command did not change, and why. */
export type PassedOver = readonly [count: number, why: string];

/** Prints what a command changed and what it did not; adds a hint if a missing id looks like the beginning of one. */
export function answerChange(
  session: Session,
  ids: readonly string[],
  sum: { readonly missing: number },
  done: string,
  passedOver: readonly PassedOver[],
): void {
  const rest = [...passedOver, [sum.missing, "not found"] as const].filter(([count]) => count > 0);
  session.answer(sum, () => `${[done, ...rest.map(([count, why]) => `${count} ${why}`)].join(", ")}\n`);
  if (sum.missing > 0) hintAtWholeIds(session, ids);
}

/** Runs `work` for an id; a `not_found` error gets a hint where the id looks like the beginning of one. */
export async function withWholeId<T>(session: Session, id: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isRedriveError(error, "not_found") || !isPart(id)) throw error;
    const message = `${error.message} This looks like the beginning of an id: ${hint(session)}.`;
    throw new RedriveError("not_found", message, { cause: error, details: { ...error.details } });
  }
}
