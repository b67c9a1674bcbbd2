// Sends dead letters back to work, takes back those that no worker has taken, and counts what became of them, on Postgres.
//
// The order in which rows are locked is the same for all that writes letters: the cell of a fence, rows of `waiting`, jobs,
// letters, counts of causes, counts of redrive runs.
import { REDRIVE_SUMS, REDRIVE_TICK, type RedriveSums } from "../../core/recovery/outcome.ts";
import { isJobId } from "../../core/new-job.ts";
import { NO_WORKER } from "../causes.ts";
import type { NewPayload } from "../payloads.ts";
import { countsFromRows, redriveCountsText } from "../redrive-queries.ts";
import type { DeadTarget, RecallAnswer, RecallTarget, RedriveAnswer, RedriveRequest, Store } from "../store.ts";
import { addCounts, REDRIVE_TICKS, tickColumns } from "../tick-tables.ts";
import { tickLetters } from "./causes.ts";
import { fencer } from "./cells.ts";
import { noteEnded } from "./columns.ts";
import { type Ask, type Context, NOW, type Placed, placed, rounds } from "./context.ts";
import { postgresDialect } from "./dialect.ts";
import type { PostgresStatement } from "./driver.ts";
import type { Waker } from "./wake.ts";

/** The verbs that send dead letters back, and take them back. */
export function redriveVerbs({ db, s }: Context, waker: Waker): Pick<Store, "redrive" | "recall" | "redriveCounts"> {
  const redrive = redriver(s, waker);
  const recall = recaller(s, waker);
  const writeFence = fencer(s);
  const counts = { name: "redrive_counts", text: redriveCountsText(postgresDialect(s), "redrive = any($1::text[])") };
  return {
    async redrive(requests, fence) {
      const groups = legalRounds(requests);
      if (groups.length === 0 && !fence) return requests.map(() => "missing");
      return db.together(async (ask) => {
        if (fence && !(await writeFence(ask, fence))) return requests.map(() => "fenced");
        return answersOf(requests, groups, (group) => redrive(ask, group));
      });
    },
    async recall(targets) {
      const groups = legalRounds(targets);
      if (groups.length === 0) return targets.map(() => "missing");
      return db.together((ask) => answersOf(targets, groups, (group) => recall(ask, group)));
    },
    redriveCounts: async (ids) => countsFromRows(ids, ids.length === 0 ? [] : await db.ask(counts, ids)),
  };
}

/** Those that can name a job, each job once in a round. */
function legalRounds<T extends DeadTarget>(items: readonly T[]): Placed<T>[][] {
  const isLegal = ({ item }: Placed<T>): boolean => isJobId(item.id) && Number.isSafeInteger(item.generation);
  return rounds(placed(items).filter(isLegal), ({ id }) => id);
}

/** The answers in the order of the items; `missing` where there is none. */
async function answersOf<T, A>(
  items: readonly T[],
  groups: readonly Placed<T>[][],
  one: (group: readonly T[]) => Promise<Map<T, A>>,
): Promise<(A | "missing")[]> {
  const answers: (A | "missing")[] = items.map(() => "missing");
  for (const group of groups) {
    const found = await one(group.map(({ item }) => item));
    for (const { at, item } of group) answers[at] = found.get(item) ?? "missing";
  }
  return answers;
}

const TEN_SECONDS = `(select ${NOW} - ${NOW} % ${REDRIVE_TICK})`;

/** Counts of redrive runs from a query with these columns, as a CTE; in the order of runs, as every other writer. */
export function tickRuns(s: string, holder: string, counts: Readonly<Record<string, string>>, from: string): string {
  const sums = REDRIVE_SUMS.map((count) => (counts[count] ? `count(*) filter (where ${counts[count]})` : "0"));
  const any = Object.values(counts).map((is) => `(${is})`);
  return `counted as (
      insert into ${s}.redrive_tick (${tickColumns(REDRIVE_TICKS)})
      select redrive, ${TEN_SECONDS}, ${holder}, ${sums.join(", ")} from ${from}
      where redrive is not null and (${any.join(" or ")}) group by redrive order by redrive
      ${addCounts(REDRIVE_TICKS)})`;
}

const NO_HOLDER = `'${NO_WORKER}'`;

/** Counts the jobs of deleted letters that are lost to their run, as a CTE. */
export const tickGone = (s: string, from: string): string => tickRuns(s, NO_HOLDER, { gone: "is_lost" }, from);

type OfGroup<T, A> = (ask: Ask, group: readonly T[]) => Promise<Map<T, A>>;

/** The answers to a group: those done by their position from 1; of the others, `refused` for those that exist. */
function refuser<T extends DeadTarget>(
  s: string,
): <A>(ask: Ask, group: readonly T[], done: readonly number[], answer: A) => Promise<Map<T, A | "refused">> {
  const exists = { name: "redrive_exists", text: `select id from ${s}.job where id = any($1::text[])` };
  return async <A>(ask: Ask, group: readonly T[], done: readonly number[], answer: A) => {
    const answers = new Map<T, A | "refused">();
    if (done.length < group.length) {
      const ids = group.map(({ id }) => id);
      const there = new Set((await ask(exists, ids)).map(([id]) => id));
      for (const item of group) if (there.has(item.id)) answers.set(item, "refused");
    }
    for (const place of done) answers.set(group[place - 1] as T, answer);
    return answers;
  };
}

function inIdOrder<T extends DeadTarget>(items: readonly T[]): T[] {
  return [...items].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function redriver(s: string, waker: Waker): OfGroup<RedriveRequest, RedriveAnswer> {
  const revive = reviveStatement(s, waker);
  const refuse = refuser<RedriveRequest>(s);
  const addPayloads = payloadWriter(s);
  return async (ask, requests) => {
    const group = inIdOrder(requests);
    const [row] = await ask(
      revive,
      group.map(({ id }) => id),
      group.map(({ generation }) => generation),
      group.map(({ delayMs }) => delayMs),
      group.map(({ redrive = null }) => redrive),
    );
    const done = (row?.[0] ?? []) as number[];
    const now = row?.[2] as number;
    const changed = done
      .map((place) => group[place - 1] as RedriveRequest)
      .filter(({ payload }) => payload !== undefined);
    await addPayloads(
      ask,
      changed.map(({ id, payload = "", redrive = null }) => ({
        id,
        payload,
        at: now,
        actor: null,
        redrive,
        why: null,
      })),
    );
    return refuse(ask, group, done, "redriven");
  };
}

const reviveStatement = (s: string, waker: Waker): PostgresStatement => ({
  name: "redrive",
  text: `with u as (
      select * from unnest($1::text[], $2::int[], $3::bigint[], $4::text[]) with ordinality as u (id, generation, delay, redrive, n)),
    done as (
      update ${s}.job j set state = 'queued', generation = j.generation + 1, attempts = 0, crashes = 0, releases = 0,
        last_delay_ms = 0, batch_most = null, cancel_requested = false, finished_at = null, expires_at = null, run_at = ${NOW} + u.delay, due_at = ${NOW} + u.delay,
        updated_at = ${NOW}, lane = j.lane - j.lane % 4
      from u where j.id = u.id and j.state = 'dead' and j.generation = u.generation
      returning j.seq, j.lane, j.run_at, j.epoch, u.generation, u.redrive, u.n),
    marked as (update ${s}.dead_letter d set redriven_at = ${NOW}, redrive = done.redrive from done
      where d.job_seq = done.seq and d.generation = done.generation and d.redriven_at is null
      returning d.fingerprint, d.type, d.release, d.redrive),
    ${tickLetters(s, "redriven", "marked")},
    ${tickRuns(s, NO_HOLDER, { sent: "true" }, "marked")},
    wait as (insert into ${s}.waiting (lane, run_at, seq, epoch) select lane, run_at, seq, epoch from done)
    select array_agg(n), ${waker.notify}, ${NOW} from done`,
});

/** The new payload of one job. */
export interface JobPayload extends NewPayload {
  /** The id of the job. */
  readonly id: string;
}

/**
 * Gives jobs, each named once, another payload and keeps the one before; a payload that is the present one changes nothing.
 * The transaction has locked the jobs before.
 */
export function payloadWriter(s: string): (ask: Ask, versions: readonly JobPayload[]) => Promise<void> {
  const write = {
    name: "payload_write",
    text: `with u as (
      select * from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[])
        as u (id, payload, at, actor, redrive, why)),
    was as materialized (
      select j.seq, j.payload as before, j.created_at, u.*,
        case j.state when 'dead' then j.generation + 1 else j.generation end as next_run,
        (select max(v.n) from ${s}.payload_version v where v.job_seq = j.seq) as last
      from u join ${s}.job j on j.id = u.id where j.payload <> u.payload),
    first as (insert into ${s}.payload_version (job_seq, n, payload, at, generation)
      select seq, 0, before, created_at, 1 from was where last is null),
    next as (
      insert into ${s}.payload_version (job_seq, n, payload, at, generation, actor, redrive, why)
      select seq, coalesce(last, 0) + 1, payload, at, next_run, actor, redrive, why from was)
    update ${s}.job j set payload = was.payload from was where j.seq = was.seq`,
  };
  return async (ask, versions) => {
    if (versions.length === 0) return;
    const of = <K extends keyof JobPayload>(field: K): JobPayload[K][] => versions.map((version) => version[field]);
    await ask(write, of("id"), of("payload"), of("at"), of("actor"), of("redrive"), of("why"));
  };
}

const COPIED = [
  "type",
  "reason",
  "error_class",
  "fingerprint",
  "attempts",
  "crashes",
  "max_attempts",
  "died_at",
  "error_name",
  "error_message",
  "error_stack",
  "failure",
  "release",
];

/**
 * Takes back what `mayRecall` allows. A claim deletes the row of `waiting`, and so does this: of the two, one gets the job. A
 * producer that replaces the payload deletes it too, so that the payload compared here is the one that the job still has.
 */
function recaller(s: string, waker: Waker): OfGroup<RecallTarget, RecallAnswer> {
  const copied = COPIED.join(", ");
  const take = {
    name: "recall",
    text: `with u as (
      select * from unnest($1::text[], $2::int[], $3::text[], $4::int[]) with ordinality as u (id, generation, was, place, n)),
    held as (
      delete from ${s}.waiting w using u, ${s}.job j
      where j.id = u.id and j.state = 'queued' and j.generation = u.generation + 1 and j.releases = 0
        and w.lane = j.lane and w.run_at = j.run_at and w.seq = j.seq
        and (u.was is null or u.was = encode(sha256(convert_to(j.payload, 'UTF8')), 'hex'))
        and exists (select from ${s}.dead_letter d where d.job_seq = j.seq and d.generation = u.generation)
        and not exists (select from ${s}.attempt a where a.job_seq = j.seq and a.generation = j.generation)
      returning w.seq, u.n, u.place),
    done as (
      update ${s}.job j set state = 'dead', finished_at = ${NOW}, expires_at = ${NOW} + j.keep_dead_ms, updated_at = ${NOW}
      from held where j.seq = held.seq returning j.seq, j.generation, j.expires_at, held.n, held.place),
    marked as (
      update ${s}.dead_letter d set outcome = 'recalled', outcome_at = ${NOW} from done
      where d.job_seq = done.seq and d.generation = done.generation - 1
      returning d.job_seq, d.redrive, done.n, done.place, ${COPIED.map((column) => `d.${column}`).join(", ")}, done.generation),
    buried as (
      insert into ${s}.dead_letter (job_seq, generation, ${copied}) select job_seq, generation, ${copied} from marked order by place),
    ended as (${noteEnded(s, "dead", "done")}),
    places as (delete from ${s}.place p using done where p.seq = done.seq returning p.seq),
    told as materialized (select ${waker.notify} from places limit 1),
    ${tickLetters(s, "recalled", "marked")},
    ${tickRuns(s, NO_HOLDER, { recalled: "true" }, "marked")}
    select array_agg(n), (select count(*) from told), ${NOW} from done`,
  };
  const refuse = refuser<RecallTarget>(s);
  const addPayloads = payloadWriter(s);
  return async (ask, targets) => {
    const group = inIdOrder(targets);
    const [row] = await ask(
      take,
      group.map(({ id }) => id),
      group.map(({ generation }) => generation),
      group.map(({ repair }) => repair?.was ?? null),
      // Locked by id, like all writers do, but buried in the order in which the caller named them.
      group.map((target) => targets.indexOf(target)),
    );
    const done = (row?.[0] ?? []) as number[];
    const at = row?.[2] as number;
    const recalled = done.map((place) => group[place - 1] as RecallTarget);
    await addPayloads(
      ask,
      recalled.flatMap(({ id, repair }) => {
        if (!repair) return [];
        const { payload, actor, why } = repair;
        return [{ id, payload, at, actor, redrive: null, why }];
      }),
    );
    return refuse(ask, group, done, "recalled");
  };
}

/** The end of a run, or of a waiting job, for the letter of the generation before. */
export interface SentEnd {
  /** The number of the job. */
  readonly seq: number;
  /** The fingerprint of the failure, where a run failed and was charged, or the job died; else null. */
  readonly failed: string | null;
}

/** What `outcomeAfter` counts, as conditions on the columns of `was`. */
const COUNTED = {
  good: "before is null and state = 'completed'",
  same: "before is null and state <> 'completed' and failed = fingerprint",
  other: "before is null and state <> 'completed' and failed <> fingerprint",
  recovered: "before is not null and state = 'completed'",
  dead: "state = 'dead'",
  cancelled: "before is null and state = 'cancelled' and failed is null",
} satisfies Partial<Record<keyof RedriveSums, string>>;

/** Tells letters what became of their jobs, whose rows this transaction has changed, as `outcomeAfter` says it. */
export function letterTeller(s: string): (ask: Ask, ends: readonly SentEnd[], holder: string | null) => Promise<void> {
  const tell = {
    name: "letter_outcome",
    text: `with was as materialized (
      select d.seq as letter, d.redrive, d.outcome as before, d.fingerprint, u.failed, j.state
      from unnest($1::bigint[], $2::text[]) as u (seq, failed) join ${s}.job j on j.seq = u.seq
      join ${s}.dead_letter d on d.job_seq = j.seq and d.generation = j.generation - 1
      where j.state <> 'queued' or u.failed is not null order by d.job_seq for update of d, j),
    told as (
      update ${s}.dead_letter d set outcome = case was.state when 'queued' then 'failing' else was.state end, outcome_at = ${NOW}
      from was where d.seq = was.letter and (was.state <> 'queued' or was.before is null)),
    ${tickRuns(s, "$3", COUNTED, "was")} select 1`,
  };
  return async (ask, ends, holder) => {
    if (ends.length === 0) return;
    const seqs = ends.map(({ seq }) => seq);
    const failed = ends.map((end) => end.failed);
    await ask(tell, seqs, failed, holder ?? NO_WORKER);
  };
}
