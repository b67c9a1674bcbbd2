// Keys on Postgres. Taking one is an insert that waits for any transaction about to take it, so that the loser never
// reports success because of a winner that rolled back; keys are always locked in order. A statement that waited for a
// lock sees other tables as they were before the wait, so the next statement reads the holder of a key.
import { TERM_COLUMNS, termValues } from "../columns.ts";
import type { State } from "../../core/job.ts";
import type { KeyHolder, NewJob } from "../../core/new-job.ts";
import { PLACE, stateOf, toQueue } from "./columns.ts";
import { NOW } from "./context.ts";
import type { Ask } from "./driver.ts";

/** Locks, reads and moves keys. */
export interface KeyKeeper {
  /** Takes or locks the keys of jobs, each of another key; answers the holders of those that were taken before. */
  lock(ask: Ask, jobs: readonly NewJob[]): Promise<Map<NewJob, KeyHolder>>;
  /** The present holders of the keys of jobs; each is locked. */
  holders(ask: Ask, jobs: readonly NewJob[]): Promise<Map<NewJob, KeyHolder>>;
  /** Gives a waiting holder the payload of the new job; false if it no longer waits. */
  replace(ask: Ask, job: NewJob, id: string, lane: number): Promise<boolean>;
  /** Makes new jobs the holders of their keys. */
  take(ask: Ask, jobs: readonly NewJob[]): Promise<void>;
}

/** Keys of one schema; `keep` is a lock for the lanes that jobs are moved to. */
export function keyKeeper(s: string, keep = ""): KeyKeeper {
  const { reserve, holders, take, replace } = keyStatements(s, keep);
  const columns = (jobs: readonly NewJob[]): string[][] => [
    jobs.map(({ type }) => type),
    jobs.map(({ key }) => key as string),
    jobs.map(({ id }) => id),
    jobs.map(({ digest }) => digest as string),
  ];
  const keeper: KeyKeeper = {
    async lock(ask, jobs) {
      if (jobs.length === 0) return new Map();
      const fresh = new Set(
        (await ask(reserve, ...columns(jobs))).map(([type, key]) => `${String(type)} ${String(key)}`),
      );
      return keeper.holders(
        ask,
        jobs.filter((job) => !fresh.has(`${job.type} ${job.key}`)),
      );
    },
    async holders(ask, jobs) {
      const found = new Map<NewJob, KeyHolder>();
      if (jobs.length === 0) return found;
      const byKey = new Map(jobs.map((job) => [`${job.type} ${job.key}`, job]));
      for (const row of await ask(holders, ...columns(jobs).slice(0, 2))) {
        const [type, key, id, digest, state] = row as [string, string, string, string, State | null];
        found.set(byKey.get(`${type} ${key}`) as NewJob, { id, digest, state });
      }
      return found;
    },
    async replace(ask, job, id, lane) {
      const { payload, version, limited, runAt, delayMs, trace } = job;
      const moved = job.unique === "debounce";
      const values = [id, lane, payload, version, limited, moved, runAt, delayMs, trace, ...termValues(job)];
      const rows = await ask(replace, ...values);
      if (rows.length === 0) return false;
      await keeper.take(ask, [{ ...job, id }]);
      return true;
    },
    async take(ask, jobs) {
      if (jobs.length > 0) await ask(take, ...columns(jobs));
    },
  };
  return keeper;
}

/** The statements about keys of one schema; `keep` is a lock for the lanes that jobs are moved to. */
export function keyStatements(s: string, keep: string) {
  // Creates missing keys and locks the rest: the condition is checked after the lock. So no key can be deleted in
  // between.
  const reserve = {
    name: "key_reserve",
    text: `insert into ${s}.job_key as k (type, key, job_id, digest, created_at)
      select u.type, u.key, u.id, u.digest, ${NOW} from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as u (type, key, id, digest)
      order by u.type collate "C", u.key collate "C" on conflict (type, key) do update set gone = k.gone where false returning k.type, k.key`,
  };
  const holders = {
    name: "key_holders",
    text: `select k.type, k.key, k.job_id, k.digest, (select ${stateOf(s)} from ${s}.job j where j.id = k.job_id) as state
      from ${s}.job_key k join unnest($1::text[], $2::text[]) as u (type, key) on k.type = u.type and k.key = u.key`,
  };
  const take = {
    name: "key_take",
    text: `update ${s}.job_key k set job_id = u.id, digest = u.digest, created_at = ${NOW}, gone = false
      from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as u (type, key, id, digest)
      where k.type = u.type and k.key = u.key`,
  };
  // A change of a waiting job first takes it from the queue; if a claim was faster, nothing is left to change.
  const replace = {
    name: "key_replace",
    text: `with held as (
      delete from ${s}.waiting w using ${s}.job j where j.id = $1 and j.state = 'queued' and w.lane = j.lane
        and w.run_at = j.run_at and w.seq = j.seq
        and exists (select from ${s}.lane where base = $2::bigint and retired_at is null ${keep}) returning w.seq),
    changed as (
      update ${s}.job j set lane = $2::bigint + j.lane % 4, payload = $3, version = $4, limited = $5,
        run_at = case when $6 then coalesce($7::bigint, ${NOW}) + $8::bigint else j.run_at end,
        due_at = case when $6 then coalesce($7::bigint, ${NOW}) + $8::bigint else j.due_at end,
        trace = $9, ${TERM_COLUMNS.map((column, at) => `${column} = $${at + 10}`).join(", ")}, updated_at = ${NOW}
      from held where j.seq = held.seq returning ${PLACE}, j.generation),
    noted as (
      insert into ${s}.payload_version (job_seq, n, payload, at, generation)
      select changed.seq, max(v.n) + 1, $3, ${NOW}, changed.generation from changed
      join ${s}.payload_version v on v.job_seq = changed.seq group by changed.seq, changed.generation),
    places as (
      delete from ${s}.place p using changed where p.seq = changed.seq
        and p.group_n is distinct from (select group_n from ${s}.lane where base = $2::bigint and group_concurrency = 1))
    ${toQueue(s, "changed")} returning seq`,
  };
  return { reserve, holders, take, replace };
}
