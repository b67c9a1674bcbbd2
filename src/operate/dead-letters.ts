// The dead letters: list, inspect, count, send back to work, remove. By id or by filter. Repeating a call changes
// nothing more, because a redrive names the generation it saw and a removed job no longer exists.
import { type Duration, parseDuration } from "../core/duration.ts";
import { RedriveError } from "../core/errors.ts";
import { type AttemptRecord, type DeadLetter, DEATH_REASONS, FAILURE_CLASSES } from "../core/job.ts";
import { JOB_BOUNDS } from "../core/new-job.ts";
import { invalid, objectOf, namesOf, parseOptions } from "../core/options.ts";
import { LETTER_FIELDS } from "../core/recovery/selection.ts";
import type { DeadLetterQuery, LetterFilter, Reach, Page, Store, Tally } from "../store/store.ts";
import { checkFilter as checkLetterFilter } from "../store/verb-checks.ts";
import type { ActionOptions } from "../report/event-log.ts";
import { exportLetters, type ExportFormat, type ExportOptions } from "./export.ts";
import { aboutTarget, checkCursor, checkId, checkKinds, checkNarrow } from "./filter.ts";
import { instantOf } from "../enqueue/new-jobs.ts";
import { openRepair, type Repair, type RepairDependencies } from "./repair.ts";
import { everyItem, inChunks, LOOK_AT, PAGE } from "../enqueue/paging.ts";

/** Which dead letters; every field narrows. Where no field is given, `retry` and `remove` need `all: true`. */
export type DeadLetterFilter = Omit<LetterFilter, "from" | "until" | "aside"> & {
  /** Died at this time or later: a date, epoch milliseconds or an ISO 8601 text. */
  readonly from?: Date | number | string;
  /** Died before this time. */
  readonly until?: Date | number | string;
  /** Selects every dead letter, where no other field is given. */
  readonly all?: true;
};

/** One dead letter by its job, several, or all that match. */
export type DeadLetterTarget = string | readonly string[] | DeadLetterFilter;

/** A dead letter with everything known about it. */
export interface DeadLetterDetails extends DeadLetter {
  /** The failed runs of the job, oldest first: of each generation the first and the last nine. */
  readonly history: readonly AttemptRecord[];
}

/** The result of a removal. */
export interface RemoveSummary {
  /** Jobs that were deleted. */
  readonly removed: number;
  /** Jobs that are not dead. */
  readonly refused: number;
  /** Ids without a job. */
  readonly missing: number;
}

/** Lists dead letters, sends them back to work, repairs, removes or exports them. */
export interface DeadLetters extends Repair {
  /**
   * A page of dead letters, newest first. Besides the filter: `limit` (1 to 200; default 50), `cursor` (the `next` of
   * the page before), `oldest: true` for the oldest first, `payloads: false` to leave out payload, progress and result,
   * and `lookAt` (default 10,000): the most letters that it looks at. A page that is not full for that reason has
   * `seenTo`, and its `next` goes on there.
   */
  list(
    query?: DeadLetterFilter & Partial<Pick<DeadLetterQuery, "limit" | "cursor" | "oldest" | "payloads" | "lookAt">>,
  ): Promise<Page<DeadLetter>>;
  /** Every dead letter that matches, read page by page; newest first unless `oldest: true`. */
  all(filter?: DeadLetterFilter & Pick<DeadLetterQuery, "oldest">): AsyncIterable<DeadLetter>;
  /** The newest dead letter of a job, with its history; rejects with `not_found` if there is none. */
  get(id: string): Promise<DeadLetterDetails>;
  /**
   * Sends them back to work with attempts and crashes reset, after `delay` (default 0, at most 10 years). A filter sends
   * those that are dead when the call begins, in the order in which they were enqueued. Counts the `redriven`, those
   * `refused` because they are no longer dead, and ids that are `missing`.
   */
  retry(
    target: DeadLetterTarget,
    options?: { readonly delay?: Duration } & ActionOptions,
  ): Promise<Record<"redriven" | "refused" | "missing", number>>;
  /** Deletes dead jobs with their dead letters and history. */
  remove(target: DeadLetterTarget, options?: ActionOptions): Promise<RemoveSummary>;
  /**
   * Counts the dead letters that match by class, type, reason and cause. `lookAt` is the most letters that it looks at,
   * the newest first; a tally that could not look at all has `seenTo`.
   */
  stats(filter?: DeadLetterFilter & Reach): Promise<Tally>;
  /**
   * The dead letters that match as text, oldest first, a line at a time: `ndjson` or `csv`. Fields that look like
   * secrets are masked unless `reveal: true`.
   */
  export(format: ExportFormat, filter?: DeadLetterFilter, options?: ExportOptions): AsyncIterable<string>;
}

const FILTER = namesOf<DeadLetterFilter>()([
  ...LETTER_FIELDS,
  "jobId",
  "reason",
  "redriven",
  "redrive",
  "outcome",
  "all",
]);

/** The dead letters of a store. */
export function openDeadLetters(parts: RepairDependencies): DeadLetters {
  const { store, eventLog } = parts;
  const all = async function* ({
    oldest = false,
    ...filter
  }: DeadLetterFilter & Pick<DeadLetterQuery, "oldest"> = {}): AsyncGenerator<DeadLetter> {
    const query = { ...letterFilter(filter), oldest };
    yield* everyItem((cursor) => store.deadLetters({ ...query, limit: PAGE, cursor }));
  };
  const repair = openRepair(parts, (filter) => {
    checkFilter(filter);
    return letterFilter(filter);
  });
  return {
    ...repair,
    all,
    async list(query = {}) {
      const { limit = 50, cursor = null, oldest = false, payloads = true, ...rest } = objectOf(query, "query");
      const { lookAt = LOOK_AT, ...filter } = rest;
      checkCursor(cursor);
      return store.deadLetters({ ...letterFilter(filter), limit, cursor, oldest, payloads, lookAt });
    },
    async get(id) {
      const query = { jobId: checkId(id), redriven: true, limit: 1 };
      const [page, history] = await Promise.all([store.deadLetters(query), store.history(id)]);
      const [letter] = page.items;
      if (!letter) throw noLetter(id);
      return { ...letter, history };
    },
    async retry(target, options = {}) {
      const { delay = 0, why } = parseOptions(options, ["delay", "why"], "retry");
      const delayMs = parseDuration(delay, "delay", { maxMs: JOB_BOUNDS.delayMs });
      const about = aboutTarget(target, checkFilter);
      const sum = { redriven: 0, refused: 0, missing: 0 };
      const details = { ...about.details, delayMs };
      const action = { kind: "dead_letters.retry", ...about, why, details, outcome: () => sum };
      await eventLog.act(action, () => redriveAll(chunks(target, store), delayMs, store, sum));
      return sum;
    },
    async remove(target, options = {}) {
      const { why } = parseOptions(options, ["why"], "remove");
      const about = aboutTarget(target, checkFilter);
      const sum = { removed: 0, refused: 0, missing: 0 };
      const action = { kind: "dead_letters.remove", ...about, why, outcome: () => sum };
      await eventLog.act(action, () => removeAll(chunks(target, store), store, sum));
      return sum;
    },
    stats: async ({ lookAt, ...filter } = {}) =>
      store.tally({ ...letterFilter(filter), ...(lookAt !== undefined && { lookAt }) }),
    export(format, filter = {}, options = {}) {
      parseOptions(options, ["reveal"], "export");
      return exportLetters(format, all({ ...filter, oldest: true }), store, options);
    },
  };
}

interface Letter {
  readonly id: string;
  readonly generation: number;
  readonly dead: boolean;
}

type Chunks = AsyncIterable<(Letter | null)[]>;

/** Sends letters back to work, and adds up the answers. */
async function redriveAll(
  chunked: Chunks,
  delayMs: number,
  store: Store,
  sum: Record<"redriven" | "refused" | "missing", number>,
): Promise<void> {
  for await (const letters of chunked) {
    const found = letters.filter((letter) => letter !== null);
    sum.missing += letters.length - found.length;
    const requests = found.map(({ id, generation }) => ({ id, generation, delayMs }));
    for (const answer of await store.redrive(requests)) if (answer !== "fenced") sum[answer] += 1;
  }
}

/** Deletes dead jobs, and adds up what became of them. */
async function removeAll(
  chunked: Chunks,
  store: Store,
  sum: { -readonly [K in keyof RemoveSummary]: number },
): Promise<void> {
  for await (const letters of chunked) {
    const dead = letters.filter((letter) => letter?.dead === true) as Letter[];
    const missing = letters.filter((letter) => letter === null).length;
    const targets = dead.map(({ id, generation }) => ({ id, generation }));
    // Jobs that were redriven since the read are not removed.
    const removed = dead.length === 0 ? 0 : await store.remove(targets);
    sum.removed += removed;
    sum.missing += missing;
    sum.refused += letters.length - missing - removed;
  }
}

/** Throws for a filter that names no letters. */
function checkFilter(filter: DeadLetterFilter): void {
  checkNarrow(filter, FILTER);
  letterFilter(filter);
}

/**
 * The letters of a target in chunks; null for an id without a job. A filter gives them in the order of enqueue, so that a
 * group keeps its order, and only those that were there at the beginning, so that the call ends while others die.
 */
async function* chunks(target: DeadLetterTarget, store: Store): AsyncGenerator<(Letter | null)[]> {
  if (typeof target === "string" || Array.isArray(target)) {
    for await (const ids of inChunks([target].flat().map(checkId)))
      yield (await store.get(ids)).map(
        (job) => job && { id: job.id, generation: job.generation, dead: job.state === "dead" },
      );
    return;
  }
  const filter = target as DeadLetterFilter;
  checkNarrow(filter, FILTER);
  const query = { ...letterFilter(filter), sort: "enqueued", payloads: false, limit: PAGE } as const;
  for await (const letters of inChunks(everyItem((cursor) => store.deadLetters({ ...query, cursor }))))
    yield letters.map(({ job, generation, redrivenAt }) => ({
      id: job.id,
      generation,
      dead: redrivenAt === null && job.state === "dead",
    }));
}

/** A checked filter in the form of the store. */
function letterFilter(filter: DeadLetterFilter): LetterFilter {
  const { all, from, until, ...rest } = parseOptions(filter, FILTER, "filter");
  if (all !== undefined && all !== true) throw invalid("filter.all", "true", all, "leave it out otherwise");
  const oneOf = (field: "class" | "reason", known: readonly string[]): void => {
    if (rest[field] !== undefined && !known.includes(rest[field] as string))
      throw invalid(`filter.${field}`, known.join(", "), rest[field], "use one of these");
  };
  checkKinds(rest, {
    text: ["jobId", "type", "service", "tenant", "key", "fingerprint", "text"],
    yesOrNo: ["redriven"],
  });
  oneOf("class", FAILURE_CLASSES);
  oneOf("reason", DEATH_REASONS);
  const checked = {
    ...(rest as LetterFilter),
    ...(from !== undefined && { from: instantOf(from, "from") }),
    ...(until !== undefined && { until: instantOf(until, "until") }),
  };
  // The store refuses the same, but only after the event log has the intent.
  checkLetterFilter(checked);
  return checked;
}

function noLetter(id: string): RedriveError {
  const message = `There is no dead letter of job ${JSON.stringify(id.slice(0, 80))}. Check the id; dead letters are removed after their retention.`;
  return new RedriveError("not_found", message, { details: { id } });
}
