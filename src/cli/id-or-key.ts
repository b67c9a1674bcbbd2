// Jobs that people name by their own key instead of by an id.
import { isRedriveError, RedriveError } from "../core/errors.ts";
import { safeLine } from "../core/safe-text.ts";
import type { Redrive } from "../redrive-api.ts";
import type { Session } from "./session.ts";
import { withWholeId } from "./whole-ids.ts";

/** Longer texts are no ids; a key may have up to 255 bytes. */
const ID_MOST = 64;

/**
 * Runs `work` for the job of this id; where there is none, for the newest job with this key, and says on stderr that
 * others have had the key.
 */
export async function byIdOrKey<T>(
  session: Session,
  redrive: Redrive,
  name: string,
  work: (id: string) => Promise<T>,
): Promise<T> {
  try {
    if (name.length > ID_MOST) throw noneOf(name);
    return await withWholeId(session, name, () => work(name));
  } catch (error) {
    if (!isRedriveError(error, "not_found") || name === "") throw error;
    const { items } = await redrive.jobs.list({ key: name, limit: 2, payloads: false });
    const [newest, older] = items;
    if (!newest) throw error;
    if (older) tellOfOthers(session, name, "This is the newest", `jobs list --key ${quoted(name)}`);
    return work(newest.id);
  }
}

/** The job with the newest dead letter among those with this key. */
export async function letterOfKey(session: Session, redrive: Redrive, key: string): Promise<string> {
  const { items } = await redrive.deadLetters.list({ key, redriven: true, limit: 200, payloads: false });
  const [newest] = items;
  if (!newest) {
    const message = `There is no dead letter of a job with the key ${JSON.stringify(key)}. Check the key; dead letters are removed after their retention.`;
    throw new RedriveError("not_found", message, { details: { key } });
  }
  if (items.some(({ job }) => job.id !== newest.job.id))
    tellOfOthers(session, key, "This one died last", `dlq list --key ${quoted(key)}`);
  return newest.job.id;
}

function tellOfOthers(session: Session, key: string, which: string, all: string): void {
  const said = `Several jobs have had the key ${JSON.stringify(key)}. ${which}; \`${session.suggest(all)}\` lists them.`;
  session.say(safeLine(said));
}

/** A word for the shell. */
function quoted(key: string): string {
  return /^[\w.:/@-]+$/.test(key) ? key : `'${key.replaceAll("'", "'\\''")}'`;
}

function noneOf(name: string): RedriveError {
  const message = `There is no job with the key ${JSON.stringify(name.slice(0, 80))}. Check the key; finished jobs are removed after their retention.`;
  return new RedriveError("not_found", message, { details: { key: name } });
}
