// The lists of jobs and of dead letters, the groups of a tally and the history of a job, as SQL: the same for every SQL
// store.
import { isJobId } from "../core/new-job.ts";
import { JOB_WIDTH } from "./columns.ts";
import { readCursor, readEnqueuedCursor } from "./cursor.ts";
import { Conditions, type Dialect, type Query } from "./dialect.ts";
import { columnsFor, DEATH_COLUMNS, DEATH_WIDTH } from "./rows.ts";
import type { DeadLetterQuery, JobQuery, LetterFilter, LetterRange, Reach } from "./store.ts";

/** The source of a list of jobs `j`, worded so that an index answers; `seq` is the position in the list. */
export interface JobSource {
  readonly from: string;
  readonly where: string;
  readonly seq: string;
  /** The part of it that has its rows and positions; null where all are read. */
  readonly walk: string | null;
  /** The part of `where` that the walk can answer; default all. */
  readonly walked?: string;
  /** Joins the run of a job, for a list that needs it only for the jobs of its page. */
  readonly run?: string;
}

/** How far a page looks: the last position, and the time of what is there. */
export interface Bound {
  readonly seq: number;
  readonly at: number;
}

/** The bound in what a query for it has found; null where everything may be looked at. */
export function boundFrom(rows: readonly (readonly unknown[])[]): Bound | null {
  const [row] = rows;
  return row === undefined ? null : { seq: row[0] as number, at: row[1] as number };
}

const NARROWING = ["state", "type", "queue", "service", "tenant", "due", "tried"] as const;

/** Finds how far a page of jobs looks; null where it looks until it is full. */
export function jobBound({ dialect, sourceOf }: JobWords, query: JobQuery): Query | null {
  // A key leads to few jobs.
  if (query.lookAt === undefined || query.key !== undefined) return null;
  // Where every job matches, a page is full by then, or there are no more.
  if (query.lookAt > query.limit && NARROWING.every((field) => query[field] === undefined)) return null;
  const { walk, where: all, walked: own = all, seq } = sourceOf(query);
  if (!walk) return null;
  const where = new Conditions(dialect);
  where.add(`${seq} < ${where.of(readCursor(query.cursor))}`);
  where.add(own);
  const last = `select ${seq} as seq from ${walk} where ${where.text} order by 1 desc limit 1 offset ${where.of(query.lookAt - 1)}`;
  // The order is that of enqueue, so the time is too, whatever is walked; a run may name a job that was deleted since.
  const at = `select created_at from ${dialect.table("job")} where seq >= last.seq order by seq limit 1`;
  const text = `select last.seq, (${at}) from (${last}) last`;
  return { text, values: where.values };
}

/** Finds how far a page or a tally of letters looks; null where it looks at all that it needs. */
export function letterBound(words: LetterWords, query: DeadLetterQuery | (LetterFilter & Reach)): Query | null {
  // In the order of enqueue all are read: that is for programs, which read all pages.
  if (query.lookAt === undefined || query.jobId !== undefined || ("sort" in query && query.sort === "enqueued"))
    return null;
  const { oldest = false, cursor = null } = query as DeadLetterQuery;
  const where = new Conditions(words.dialect);
  const order = walkLetters(where, words, query, { oldest, after: readCursor(cursor, oldest), bound: null });
  const text = `select d.seq, d.died_at from ${words.dialect.table("dead_letter")} d where ${where.text}
    order by ${order} limit 1 offset ${where.of(query.lookAt - 1)}`;
  return { text, values: where.values };
}

/** The column of a filter that has an index in the order of the letters; of two such columns, one leads. */
type Lead = "fingerprint" | "type";

function leadOf({ jobId, key, fingerprint, type }: LetterFilter): readonly [Lead, string] | null {
  // These lead to few letters.
  if (jobId !== undefined || key !== undefined) return null;
  if (fingerprint !== undefined) return ["fingerprint", fingerprint];
  return type === undefined ? null : ["type", type];
}

/** A walk through the letters behind a position, up to a bound. */
interface LetterWalk {
  readonly oldest: boolean;
  readonly after: number;
  readonly bound: Bound | null;
}

/** Adds the conditions of a walk, with that of the column that leads, and gives its order. */
function walkLetters(
  where: Conditions,
  { inPairs = false }: LetterWords,
  filter: LetterFilter,
  { oldest, after, bound }: LetterWalk,
): string {
  const lead = leadOf(filter);
  const [behind, upTo, down] = oldest ? [">", "<=", ""] : ["<", ">=", " desc"];
  if (lead === null || !inPairs) {
    if (lead) where.add(`${COLUMNS[lead[0]]} = ${where.of(lead[1])}`);
    where.add(`d.seq ${behind} ${where.of(after)}`);
    if (bound) where.add(`d.seq ${upTo} ${where.of(bound.seq)}`);
    return `d.seq${down}`;
  }
  const [name, value] = lead;
  const column = COLUMNS[name];
  where.add(`(${column}, d.seq) ${behind} (${where.of(value)}, ${where.of(after)})`);
  if (bound) where.add(`(${column}, d.seq) ${upTo} (${where.of(value)}, ${where.of(bound.seq)})`);
  else where.add(`${column} ${upTo} ${where.of(value)}`);
  return `${column}${down}, d.seq${down}`;
}

/** The SQL of one store for lists of jobs. */
export interface JobWords {
  readonly dialect: Dialect;
  /** The columns of a job `j` in the order of `jobFromRow`. */
  readonly columns: string;
  /** Joins a job with its lane `l`. */
  readonly withLane: string;
  /** The state of a job, and a condition that is true for a waiting job. */
  readonly state: string;
  readonly isQueued: string;
  /** The source of a list, chosen so that few jobs are read in vain. */
  readonly sourceOf: (query: JobQuery) => JobSource;
}

/** Adds a condition for each given plain field of the query. */
export function addPlain(where: Conditions, state: string, query: JobQuery): void {
  const lane = { type: "l.type", queue: "l.queue", service: "l.service", tenant: "l.tenant" } as const;
  where.addEqual({ state, ...lane, key: "j.key" } as const, query);
}

/** A page of jobs, newest first, and one job more than wanted; `now` is store time, as SQL or as a value. */
export function jobList(words: JobWords, query: JobQuery, now: string | number, bound: Bound | null): Query {
  const source = words.sourceOf(query);
  const where = new Conditions(words.dialect);
  where.add(`${source.seq} < ${where.of(readCursor(query.cursor))}`);
  if (bound) where.add(`${source.seq} >= ${where.of(bound.seq)}`);
  addPlain(where, words.state, query);
  where.add(source.where);
  if (query.due !== undefined) {
    const at = typeof now === "string" ? now : where.of(now);
    where.add(`${words.isQueued} and j.run_at ${query.due ? "<=" : ">"} ${at}`);
  }
  if (query.tried !== undefined) where.add(query.tried ? "j.attempts > 0" : "j.attempts = 0");
  const columns = `select ${columnsFor(words.columns, query)}, j.seq`;
  const page = `from ${source.from} ${words.withLane}
    where ${where.text} order by ${source.seq} desc limit ${where.of(query.limit + 1)}`;
  const { table } = words.dialect;
  const text = source.run
    ? `${columns} from (select j.seq ${page}) p join ${table("job")} j on j.seq = p.seq ${words.withLane} ${source.run} order by p.seq desc`
    : `${columns} ${page}`;
  return { text, values: where.values };
}

/** The SQL of one store for lists of dead letters. */
export interface LetterWords {
  readonly dialect: Dialect;
  /** The columns of a job `j` in the order of `jobFromRow`. */
  readonly jobColumns: string;
  /** Joins a letter `d` with its job `j` and the lane `l` of that job. */
  readonly withJob: string;
  /**
   * A column that leads is compared together with the position, for a planner that would otherwise walk through all
   * letters and drop those of other causes or types.
   */
  readonly inPairs?: boolean;
  /** The value of a column, by which no index is chosen; not needed where the store chooses the index by the order. */
  readonly unindexed?: (column: string) => string;
  /** Joins the job that holds the key of the letter's job, where that is another; and its id and state. */
  readonly withHolder: string;
  readonly holder: string;
  /** Joins the other tables that the columns of a job need. */
  readonly withRun?: string;
  /** A condition that is true for letters of jobs that were set aside, worded so that an index answers. */
  readonly isAside: string;
}

/** The position of a page's cursor in its rows. */
export const LETTER_CURSOR = DEATH_WIDTH + JOB_WIDTH;

const COLUMNS = {
  type: "d.type",
  service: "l.service",
  tenant: "l.tenant",
  class: "d.error_class",
  reason: "d.reason",
  fingerprint: "d.fingerprint",
} as const;

/** A page of letters, and one letter more than wanted. */
export function letterList(words: LetterWords, query: DeadLetterQuery, bound: Bound | null, through: number): Query {
  const { dialect, jobColumns, withJob, withRun = "" } = words;
  if (query.sort === "enqueued") return enqueuedList(words, query, through);
  const { oldest = false } = query;
  const where = new Conditions(dialect);
  const order = walkLetters(where, words, query, { oldest, after: readCursor(query.cursor, oldest), bound });
  narrow(where, words, query, [leadOf(query)?.[0]]);
  const text = `select ${DEATH_COLUMNS}, ${words.holder}, ${columnsFor(jobColumns, query)}, d.seq
    from ${dialect.table("dead_letter")} d ${withJob} ${withRun} ${words.withHolder}
    where ${where.text} order by ${order} limit ${where.of(query.limit + 1)}`;
  return { text, values: where.values };
}

/** The number of the newest letter of a list in the order of enqueue; null where it must be read from the table. */
export function knownThrough({ cursor, through }: DeadLetterQuery): number | null {
  const from = readEnqueuedCursor(cursor)?.through ?? null;
  return from === null || through === undefined ? (from ?? through ?? null) : Math.min(from, through);
}

/** Adds the conditions of a walk in the order of enqueue, with all of the filter, and gives its order. */
function walkEnqueued(where: Conditions, words: LetterWords, query: DeadLetterQuery): string {
  const { jobSeq, generation } = readEnqueuedCursor(query.cursor) ?? { jobSeq: 0, generation: 0 };
  const { type, redrive } = query;
  // The index of the types has another order: with it, every page would sort all letters of the type.
  if (type !== undefined) where.add(`${words.unindexed?.(COLUMNS.type) ?? COLUMNS.type} = ${where.of(type)}`);
  if (redrive !== undefined && words.inPairs) {
    // A run sends a job at most once. For a planner that takes the table for empty, every index would do.
    where.add(`(d.redrive, d.job_seq) > (${where.of(redrive)}, ${where.of(jobSeq)})`);
    where.add(`d.redrive <= ${where.of(redrive)}`);
    narrow(where, words, query, ["type", "redrive"]);
    return "d.redrive, d.job_seq";
  }
  where.add(`(d.job_seq, d.generation) > (${where.of(jobSeq)}, ${where.of(generation)})`);
  narrow(where, words, query, ["type"]);
  // Of a job at most one letter is not redriven, and a run sends at most one; then the index of these has the order.
  return findsSent(query) && redrive === undefined ? "d.job_seq, d.generation" : "d.job_seq";
}

/** The same in the order of enqueue, up to the newest letter of the list. */
function enqueuedList(words: LetterWords, query: DeadLetterQuery, newest: number): Query {
  const { dialect, jobColumns, withJob, withRun = "" } = words;
  const where = new Conditions(dialect);
  const through = (): string => `cast(${where.of(newest)} as bigint)`;
  const cursor = `cast(d.job_seq as text) || '.' || d.generation || '.' || ${through()}`;
  where.add(`d.seq <= ${through()}`);
  const order = walkEnqueued(where, words, query);
  const text = `select ${DEATH_COLUMNS}, ${words.holder}, ${columnsFor(jobColumns, query)}, ${cursor}
    from ${dialect.table("dead_letter")} d ${withJob} ${withRun} ${words.withHolder}
    where ${where.text} order by ${order} limit ${where.of(query.limit + 1)}`;
  return { text, values: where.values };
}

/** The groups of a tally: one pass over the matching letters, without their texts. */
export function letterGroups(words: LetterWords, filter: LetterFilter & LetterRange, bound: Bound | null): Query {
  const where = new Conditions(words.dialect);
  walkLetters(where, words, filter, { oldest: false, after: readCursor(null), bound });
  narrow(where, words, filter, [leadOf(filter)?.[0]]);
  const ofJobs = filter.service !== undefined || filter.tenant !== undefined || filter.aside;
  const text = `select d.fingerprint, d.error_class, d.type, d.reason, count(*), min(d.died_at), max(d.died_at), max(d.seq)
    from ${words.dialect.table("dead_letter")} d ${ofJobs ? words.withJob : ""} where ${where.text} group by 1, 2, 3, 4`;
  return { text, values: where.values };
}

/** The failed runs of a job, by its id. */
export function historyText({ table, parameter }: Dialect): string {
  return `select j.id, a.generation, a.epoch, a.attempt, a.worker, a.started_at, a.ended_at, a.delay_ms, a.failure, a.error_stack,
      j.key, a.release
    from ${table("attempt")} a join ${table("job")} j on j.seq = a.job_seq where j.id = ${parameter(1)} order by a.epoch`;
}

/** True for a filter that also finds letters which were sent back to work. */
function findsSent({ redriven = false, redrive, outcome }: LetterFilter): boolean {
  return redriven || redrive !== undefined || outcome !== undefined;
}

/** Adds the conditions of a filter, but for the columns that have one. */
function narrow(
  where: Conditions,
  words: LetterWords,
  filter: LetterFilter & LetterRange,
  done: readonly (keyof LetterFilter | undefined)[] = [],
): void {
  const { table, says } = words.dialect;
  const { jobId, key, from, until, text, through } = filter;
  if (through !== undefined) where.add(`d.seq <= ${where.of(through)}`);
  const upTo = readEnqueuedCursor(filter.upTo);
  if (upTo) where.add(`(d.job_seq, d.generation) <= (${where.of(upTo.jobSeq)}, ${where.of(upTo.generation)})`);
  if (jobId !== undefined) {
    const id = where.of(isJobId(jobId) ? jobId : "");
    where.add(`d.job_seq = (select seq from ${table("job")} where id = ${id})`);
  }
  if (key !== undefined) where.add(`d.job_seq in (select seq from ${table("job")} where key = ${where.of(key)})`);
  const isOpen = (name: string): boolean => !done.some((each) => each === name);
  where.addEqual(COLUMNS, Object.fromEntries(Object.entries(filter).filter(([name]) => isOpen(name))));
  if (from !== undefined) where.add(`d.died_at >= ${where.of(from)}`);
  if (until !== undefined) where.add(`d.died_at < ${where.of(until)}`);
  const { redrive, outcome } = filter;
  if (redrive !== undefined && isOpen("redrive")) where.add(`d.redrive = ${where.of(redrive)}`);
  if (outcome !== undefined) where.add("d.redriven_at is not null");
  if (outcome === "none") where.add("d.outcome is null");
  else if (outcome !== undefined) where.add(`d.outcome = ${where.of(outcome)}`);
  if (!findsSent(filter)) where.add("d.redriven_at is null");
  if (filter.aside) where.add(words.isAside);
  if (text !== undefined)
    where.add(`(${says("d.error_name", where.of(text))} or ${says("d.error_message", where.of(text))})`);
}
