// A stream of payloads on its way into the queue: checked line by line, written in shared writes, with a bounded number on
// the way. What comes before a bad line is enqueued, what comes after it is not.
import { isRedriveError, RedriveError } from "../core/errors.ts";
import type { PolicyOptions } from "../core/policy.ts";
import type { JobDefinition } from "../queue/define-job.ts";
import { type EnqueueOptions, type KnownType, newJobOf, payloadOfText } from "../queue/new-jobs.ts";
import type { EnqueuedJob } from "../queue/enqueued.ts";
import type { Redrive } from "../redrive.ts";
import { EXIT } from "./exit.ts";
import { badLine, linesOf, type NumberedLine } from "./ndjson.ts";
import { keyIn } from "./record-key.ts";
import type { Session } from "./session.ts";
import { type StreamedDocument, streamDocument } from "./streamed-document.ts";
import { counted } from "./words.ts";

/** What the stream is enqueued as. */
export interface StreamOptions {
  readonly known: KnownType;
  readonly definition: JobDefinition | null;
  readonly jobs: readonly JobDefinition[];
  readonly defaults: PolicyOptions;
  readonly fields: EnqueueOptions;
  /** The field of each payload that is its key. */
  readonly keyField: string | undefined;
}

/** Enqueues that are under way at most. */
const PENDING_MOST = 500;

const KEY_FIELD = { place: "key-field", remedy: "add it" };

interface Sum {
  enqueued: number;
  duplicates: number;
  replaced: number;
  conflicts: number;
}

/** Enqueues every line of stdin; answers the exit code. */
export async function enqueueStream(session: Session, options: StreamOptions): Promise<number> {
  const sum: Sum = { enqueued: 0, duplicates: 0, replaced: 0, conflicts: 0 };
  const ids = session.json ? streamDocument(session.io, "ids") : null;
  const hide = session.quiet ? () => undefined : session.progress.show(() => `enqueue: ${summary(sum)}`);
  let trouble: unknown = null;
  try {
    await enqueueLines(session, options, sum, ids);
  } catch (error) {
    trouble = error;
  } finally {
    hide();
  }
  if (trouble === null) {
    ids?.end({ ...sum });
    if (!session.json) session.answer(null, () => `${summary(sum)}\n`);
    if (Object.values(sum).every((count) => count === 0))
      session.log.warn({}, "nothing came on stdin: no job was enqueued");
    return sum.conflicts > 0 ? EXIT.refused : EXIT.ok;
  }
  const { enqueued, duplicates, replaced } = sum;
  const before = enqueued + duplicates + replaced;
  const error = isRedriveError(trouble)
    ? new RedriveError(trouble.code, `${trouble.message} (${before} before it were enqueued)`, { cause: trouble })
    : trouble;
  throw ids === null ? error : ids.fail(error, { ...sum });
}

async function enqueueLines(
  session: Session,
  options: StreamOptions,
  sum: Sum,
  ids: StreamedDocument | null,
): Promise<void> {
  const { known, definition, jobs, defaults } = options;
  const pending: Promise<EnqueuedJob | null>[] = [];
  const settle = async (): Promise<void> => {
    const job = await pending.shift();
    if (!job) return;
    ids?.add(JSON.stringify(job.id));
    sum[job.duplicate ? "duplicates" : job.replaced ? "replaced" : "enqueued"] += 1;
  };
  let redrive: Redrive | null = null;
  try {
    for await (const line of linesOf(session.io.stdin)) {
      const fields = await checked(line, options);
      redrive ??= await session.open({ jobs, defaults });
      const enqueued = redrive.enqueueText(definition ?? known.type, line.text, fields);
      const told = enqueued.catch((error: unknown) => {
        if (!isRedriveError(error, "conflict")) throw error;
        sum.conflicts += 1;
        session.log.warn({ line: line.number, job: error.details.id }, "the key is taken by another payload; skipped");
        return null;
      });
      // Whoever comes to it first tells of the error; until then it is not unhandled.
      told.catch(() => undefined);
      pending.push(told);
      if (pending.length >= PENDING_MOST) await settle();
    }
  } finally {
    // Every answer is waited for, also after a bad line, so that the count is right.
    while (pending.length > 0) await settle();
  }
}

/** The options of a line; throws with its number where it may not be enqueued. */
async function checked({ number, text }: NumberedLine, options: StreamOptions): Promise<EnqueueOptions> {
  const { known, fields, keyField } = options;
  try {
    const payload = await payloadOfText(known, text);
    const all = keyField === undefined ? fields : { ...fields, key: keyIn(JSON.parse(text), keyField, KEY_FIELD) };
    newJobOf(known, payload, "check", all);
    return all;
  } catch (error) {
    if (!isRedriveError(error)) throw error;
    throw badLine(number, error.message, error);
  }
}

function summary({ enqueued, duplicates, replaced, conflicts }: Sum): string {
  const rest = [
    ...(duplicates > 0 ? [counted(duplicates, "duplicate")] : []),
    ...(replaced > 0 ? [`${replaced} replaced`] : []),
    ...(conflicts > 0 ? [counted(conflicts, "conflict")] : []),
  ];
  return [`${counted(enqueued, "job")} enqueued`, ...rest].join(", ");
}
