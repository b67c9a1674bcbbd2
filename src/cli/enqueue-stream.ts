// Enqueues a stream of payloads: checks them line by line, writes them in shared writes, and bounds the number under
// way. The lines before a bad line are enqueued, those after it are not.
import { isRedriveError, RedriveError } from "../core/errors.ts";
import type { PolicyOptions } from "../core/policy.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { checkJobOf, type EnqueueOptions, type KnownType, payloadOfText } from "../enqueue/new-jobs.ts";
import type { EnqueuedJob } from "../enqueue/enqueue-result.ts";
import type { Redrive } from "../redrive-api.ts";
import { EXIT } from "./exit.ts";
import type { StopSignal } from "./io.ts";
import { badLine, linesOf, type NumberedLine } from "./ndjson.ts";
import { keyIn } from "./record-key.ts";
import type { Session } from "./session.ts";
import { type StreamedDocument, streamDocument } from "./streamed-document.ts";
import { listen } from "./supervise.ts";
import { counted } from "./format.ts";

/** How the lines are enqueued. */
export interface LinesOptions {
  readonly known: KnownType;
  readonly definition: JobDefinition | null;
  readonly jobs: readonly JobDefinition[];
  readonly defaults: PolicyOptions;
  readonly fields: EnqueueOptions;
  /** The field of each payload that holds its key. */
  readonly keyField: string | undefined;
}

/** Most enqueues under way at once. */
const PENDING_MOST = 500;

const KEY_FIELD = { place: "key-field", remedy: "add it" };

/** Most runs of lines that an error names. */
const RUNS_NAMED = 5;

interface Sum {
  enqueued: number;
  duplicates: number;
  replaced: number;
  conflicts: number;
}

/** Enqueues every line of stdin; answers the exit code. */
export async function enqueueStream(session: Session, options: LinesOptions): Promise<number> {
  const sum: Sum = { enqueued: 0, duplicates: 0, replaced: 0, conflicts: 0 };
  const ids = session.json ? streamDocument(session.io, "ids") : null;
  const hide = session.quiet ? () => undefined : session.progress.show(() => `enqueue: ${summary(sum)}`);
  let trouble: unknown = null;
  let unanswered = 0;
  const stop = listenForStop(session);
  try {
    unanswered = await enqueueLines(session, options, sum, ids, stop);
  } catch (error) {
    trouble = error;
  } finally {
    stop.end();
    hide();
  }
  if (trouble === null) {
    const { signal } = stop;
    ids?.end({ ...sum, ...(signal && { interrupted: true }) });
    if (!session.json) session.answer(null, () => `${summary(sum)}\n`);
    if (signal) return interrupted(session, signal, unanswered);
    if (Object.values(sum).every((count) => count === 0)) session.log.warn({}, "stdin was empty: no job was enqueued");
    return sum.conflicts > 0 ? EXIT.refused : EXIT.ok;
  }
  const error = withBooks(trouble, sum);
  throw ids === null ? error : ids.fail(error, { ...sum });
}

/** Reports that the rest of the input was not read; answers the exit code. */
function interrupted(session: Session, signal: StopSignal, unanswered: number): number {
  const open = counted(unanswered, "line");
  if (unanswered > 0) {
    session.say(`the store has not answered for ${open}: they may or may not be stored`);
    session.abandon();
  }
  session.say(`interrupted by ${signal}: the lines after that were not enqueued`);
  return EXIT[signal];
}

/** Enqueues the lines; answers how many of them have no answer from the store. */
async function enqueueLines(
  session: Session,
  options: LinesOptions,
  sum: Sum,
  ids: StreamedDocument | null,
  stop: Stop,
): Promise<number> {
  const { known, definition, jobs, defaults } = options;
  const pending: { readonly line: number; readonly answer: Promise<EnqueuedJob | null> }[] = [];
  // Jobs of a group run in the order of their writes, and two writes under way may overtake each other.
  const most = options.fields.group === undefined ? PENDING_MOST : 1;
  const lost: number[] = [];
  let trouble: unknown = null;
  let read = 0;
  // Every answer counts, also after an error: the jobs of another write may be stored.
  const settle = async (): Promise<void> => {
    const first = pending.shift();
    if (!first) return;
    try {
      const job = await stop.first(first.answer, "hurry");
      if (stop.isHurried) return void pending.unshift(first);
      if (!job) return;
      ids?.add(JSON.stringify(job.id));
      sum[job.duplicate ? "duplicates" : job.replaced ? "replaced" : "enqueued"] += 1;
    } catch (error) {
      trouble ??= error;
      lost.push(first.line);
    }
  };
  let redrive: Redrive | null = null;
  try {
    for await (const line of untilStopped(linesOf(session.io.stdin), stop)) {
      const fields = await checked(line, options);
      read = line.number;
      redrive ??= await session.open({ jobs, defaults });
      const enqueued = redrive.enqueueText(definition ?? known.type, line.text, fields);
      const told = enqueued.catch((error: unknown) => {
        if (!isRedriveError(error, "conflict")) throw error;
        sum.conflicts += 1;
        session.log.warn(
          { line: line.number, job: error.details.id, key: error.details.key },
          "the key is taken by another payload; skipped",
        );
        return null;
      });
      // The first code that awaits it reports the error; until then it must not count as unhandled.
      told.catch(() => undefined);
      pending.push({ line: line.number, answer: told });
      if (pending.length >= most) await settle();
      if (trouble !== null) break;
    }
  } finally {
    // Waits for every answer, also after a bad line, so that the count is right.
    while (pending.length > 0 && !stop.isHurried) await settle();
  }
  if (trouble !== null) throw unsettled(trouble, lost, read);
  return pending.length;
}

/** A first signal ends the reading, a second one the waiting for answers: the store may never answer. */
interface Stop {
  readonly signal: StopSignal | null;
  readonly isHurried: boolean;
  /** Resolves to the promise's value, or to null at the first signal ("signal") or at the second one ("hurry"). */
  first<T>(promise: Promise<T>, until: "signal" | "hurry"): Promise<T | null>;
  end(): void;
}

function listenForStop({ io }: Session): Stop {
  const signals = listen(io);
  const heard: StopSignal[] = [];
  // One waiter at a time: a shared promise of the signal would keep every line of a long stream in memory.
  let wake = (): void => undefined;
  const note = (signal: StopSignal): void => {
    heard.push(signal);
    wake();
    if (heard.length < 2) void signals.next().then(note);
  };
  void signals.next().then(note);
  return {
    get signal() {
      return heard[0] ?? null;
    },
    get isHurried() {
      return heard.length > 1;
    },
    first: (promise, until) =>
      new Promise((resolve, reject) => {
        wake = () => void (heard.length > (until === "signal" ? 0 : 1) && resolve(null));
        wake();
        promise.then(resolve, reject);
      }),
    end: signals.stop,
  };
}

/** The lines up to the signal. A line whose end has not arrived is left out. */
async function* untilStopped<T>(lines: AsyncIterable<T>, stop: Stop): AsyncGenerator<T> {
  const source = lines[Symbol.asyncIterator]();
  for (;;) {
    const next = await stop.first(source.next(), "signal");
    if (next === null || next.done === true) return;
    yield next.value;
  }
}

/** The error of the store with the lines that it concerns, and the last line that was read. */
function unsettled(error: unknown, lost: readonly number[], read: number): unknown {
  if (!isRedriveError(error)) return error;
  const runs: [number, number][] = [];
  for (const line of lost) {
    const last = runs.at(-1);
    if (last && line === last[1] + 1) last[1] = line;
    else runs.push([line, line]);
  }
  const named = runs.slice(0, RUNS_NAMED).map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`));
  const more = runs.length > RUNS_NAMED ? ` and ${runs.length - RUNS_NAMED} more` : "";
  const said = error.message.replace("Nothing was written", "None of these was written");
  const message = `${lost.length === 1 ? "line" : "lines"} ${named.join(", ")}${more}: ${said}`;
  return new RedriveError(error.code, message, { cause: error, details: { ...error.details, read } });
}

/** The error with the number of jobs that were enqueued anyway. */
function withBooks(trouble: unknown, { enqueued, duplicates, replaced }: Sum): unknown {
  if (!isRedriveError(trouble)) return trouble;
  const stored = enqueued + duplicates + replaced;
  const { read } = trouble.details;
  // Lines after the lost ones may be stored: starting from there would enqueue them again.
  const said =
    typeof read === "number" ? `were enqueued, and no line after line ${read} was read` : "before it were enqueued";
  return new RedriveError(trouble.code, `${trouble.message} (${stored} ${said})`, { cause: trouble });
}

/** The options of a line; throws with its number where the line may not be enqueued. */
async function checked({ number, text }: NumberedLine, options: LinesOptions): Promise<EnqueueOptions> {
  const { known, fields, keyField } = options;
  try {
    const payload = await payloadOfText(known, text);
    const all = keyField === undefined ? fields : { ...fields, key: keyIn(JSON.parse(text), keyField, KEY_FIELD) };
    checkJobOf(known, payload, all);
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
