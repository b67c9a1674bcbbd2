// Waiting jobs in order of due time. No index has that order, because every enqueue and every claim would have to write
// to it. So a page is put together from the lanes, each of which has it. Only for retries there is such an index.
import type { Job } from "../../core/job.ts";
import { LANE_KINDS } from "../../core/lane.ts";
import { JOB_WIDTH, RUN_AT, type Value } from "../columns.ts";
import { type DuePlace, readDueCursor } from "../cursor.ts";
import { duePage, LANES_MOST, laneFields } from "../due-page.ts";
import { columnsFor, jobFromRow } from "../rows.ts";
import type { JobQuery, Page } from "../store.ts";
import { jobColumns, lookUp, NO_RUN, withEachLane } from "./columns.ts";
import { type Context, NOW } from "./context.ts";
import { time } from "./dialect.ts";

/** A page of waiting jobs, the earliest due first. */
export async function listDue({ questions, s }: Context, query: JobQuery): Promise<Page<Job>> {
  const ask = async (text: string, words: DueWords): Promise<Value[][]> =>
    (await questions.ask({ text }, ...words.values)) as Value[][];
  const page = async (words: DueWords, places: string, bound: DuePlace | null = null): Promise<Page<Job>> => {
    const { rows, ...rest } = duePage(await ask(jobsAt(s, query, places), words), query.limit, placeOf, bound);
    return { items: rows.map(jobFromRow), ...rest };
  };
  const words = new DueWords(query);
  if (query.key !== undefined) return page(words, ofKey(s, words, query.key));
  if (query.tried) {
    const looks = new DueWords(query);
    const isBounded = query.lookAt !== undefined && laneFields(query).length > 0;
    const [last] = isBounded ? await ask(lastRetry(s, looks, query.lookAt), looks) : [];
    const bound = last ? { runAt: last[0] as number, seq: last[1] as number } : null;
    return page(words, retries(s, words, bound), bound);
  }
  const lanes = new DueWords(query);
  const [tooMany] = await ask(`select 1 from ${s}.lane l where ${lanes.ofLane} limit 1 offset ${LANES_MOST}`, lanes);
  return page(words, tooMany ? ofManyLanes(s, words) : ofLanes(s, words));
}

const placeOf = (row: readonly Value[]): DuePlace => ({ runAt: row[RUN_AT] as number, seq: row[JOB_WIDTH] as number });

/** The parts of a statement about a query, and the values of its parameters. */
class DueWords {
  readonly values: Value[] = [];
  readonly query: JobQuery;

  constructor(query: JobQuery) {
    this.query = query;
  }

  /** A new parameter with this value. */
  of(value: Value): string {
    return `$${this.values.push(value)}`;
  }

  /** The condition on a lane `l`. */
  get ofLane(): string {
    return ["true", ...laneFields(this.query).map(([name, value]) => `l.${name} = ${this.of(value)}`)].join(" and ");
  }

  /** The condition on a place `w` in the queue. */
  get ofPlace(): string {
    const { cursor, due, tried } = this.query;
    const { runAt, seq } = readDueCursor(cursor) ?? { runAt: 0, seq: 0 };
    const behind = `(w.run_at, w.seq) > (${this.of(runAt)}, ${this.of(seq)})`;
    const isDue = due === undefined ? [] : [`w.run_at ${due ? "<=" : ">"} ${NOW}`];
    const isTried = tried === undefined ? [] : [`w.job_id is ${tried ? "not null" : "null"}`];
    return [behind, ...isDue, ...isTried].join(" and ");
  }

  /** As many places as the page needs, the earliest first. */
  get first(): string {
    return `order by w.run_at, w.seq limit ${this.of(this.query.limit + 1)}`;
  }
}

/** The jobs at places, in their order. */
function jobsAt(s: string, query: JobQuery, places: string): string {
  return `with place as materialized (${places})
    select ${columnsFor(jobColumns(s), query)}, j.seq from place w
    ${lookUp(`${s}.job`, "seq = w.seq", "j")} ${NO_RUN} ${withEachLane(s)} order by w.run_at, w.seq`;
}

const withLaneOf = (s: string): string => lookUp(`${s}.lane`, "base = w.lane - w.lane % 4", "l");

function ofKey(s: string, words: DueWords, key: string): string {
  const places = lookUp(`${s}.waiting`, "lane = k.lane and run_at = k.run_at and seq = k.seq", "w");
  return `select w.run_at, w.seq from ${s}.job k ${places} ${withLaneOf(s)}
    where k.key = ${words.of(key)} and ${words.ofLane} and ${words.ofPlace} ${words.first}`;
}

/** Retries behind the cursor, from the index of their due times. */
function walkRetries(s: string, words: DueWords, lane: string, where: string, limit: string): string {
  const order = time("w.run_at");
  const from = readDueCursor(words.query.cursor)?.runAt ?? 0;
  return `select w.run_at, w.seq from ${s}.waiting w ${lane}
    where ${order} >= ${time(`${words.of(from)}::bigint`)} and ${words.ofPlace} and ${where} order by ${order}, w.seq ${limit}`;
}

function retries(s: string, words: DueWords, bound: DuePlace | null): string {
  const lane = laneFields(words.query).length > 0 ? withLaneOf(s) : "";
  const upTo = bound ? `(w.run_at, w.seq) <= (${words.of(bound.runAt)}, ${words.of(bound.seq)})` : "true";
  return walkRetries(s, words, lane, `${upTo} and ${words.ofLane}`, `limit ${words.of(words.query.limit + 1)}`);
}

/** The last retry that a page may look at. */
function lastRetry(s: string, words: DueWords, lookAt = 1): string {
  return walkRetries(s, words, "", "true", `limit 1 offset ${words.of(lookAt - 1)}`);
}

/**
 * The first place of every lane; of those with the earliest of these, as many places as the page needs; and of them all
 * the earliest.
 */
function ofLanes(s: string, words: DueWords): string {
  // A retry waits in a lane of retries or of suspects, so that all in a lane of retries are retries.
  const kinds = LANE_KINDS.flatMap((kind, at) => (words.query.tried === false && kind === "retry" ? [] : [at]));
  const { ofLane, ofPlace, first } = words;
  return `select w.run_at, w.seq from (
      select w.lane, w.run_at, w.seq from ${s}.lane l cross join unnest(array[${kinds.join(", ")}]) as k (kind) cross join lateral (
        select * from ${s}.waiting w where w.lane = l.base + k.kind and ${ofPlace} order by w.run_at, w.seq limit 1) w
      where ${ofLane} ${first}) h
    cross join lateral (select w.run_at, w.seq from ${s}.waiting w where w.lane = h.lane and ${ofPlace} ${first}) w ${first}`;
}

/** All places of the lanes, of which the earliest are kept. */
function ofManyLanes(s: string, words: DueWords): string {
  const lanes = `${s}.lane l cross join lateral (
    select * from ${s}.waiting where lane >= l.base and lane < l.base + ${LANE_KINDS.length}) w`;
  const from = laneFields(words.query).length === 0 ? `${s}.waiting w` : lanes;
  return `select w.run_at, w.seq from ${from} where ${words.ofLane} and ${words.ofPlace} ${words.first}`;
}
