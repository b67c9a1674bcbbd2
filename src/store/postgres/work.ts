// Takes work on Postgres. Searches `waiting` by its one index, (lane, run_at, seq), so that the cost follows what is
// taken, not how many jobs wait, are parked, or are finished.
import { groupName } from "../../core/group.ts";
import type { Belonging } from "../../core/job.ts";
import type { Quota } from "../../core/claim-plan.ts";
import { isPlainJob, restColumns } from "../columns.ts";
import { claimedFrom, keepText, putRest, USUAL_CRASHES } from "../rows.ts";
import type { ClaimAnswer, ClaimedJob, ClaimRequest, Store } from "../store.ts";
import { lastStack } from "./columns.ts";
import { type Context, NOW, noteStarted } from "./context.ts";
import type { Ask, PostgresValue, PostgresStatement } from "./driver.ts";
import type { Floors } from "./floors.ts";
import { takenOfGroups } from "./groups.ts";
import type { OpenClaims } from "./open-claims.ts";

/** What most jobs have never used, or have as most others, goes as one text, and only where a job differs. */
const rest = (s: string): string => `case when ${isPlainJob("j.")}
  and j.version = 1 and j.limited and j.max_crashes = ${USUAL_CRASHES} then null
  else json_build_array(j.version, j.limited, j.max_crashes, ${restColumns("j", `${s}.attempt`)},
    ${lastStack(s)})::text end`;

/** The statement that takes work. A crash that loses it only runs the jobs again, so its commit waits for no disk. */
export function claimText(s: string): string {
  return claimOf(
    s,
    `taken as (
      delete from ${s}.waiting where ctid = any(array(
        select w.ctid from (select * from unnest($4::bigint[], $5::int[], $11::bigint[], $12::bigint[], $10::int[])
          as q (lane, quota, run_at, seq, n) order by n) q cross join lateral
          (select w.ctid from ${s}.waiting w where w.lane = q.lane and (w.run_at, w.seq) >= (q.run_at, q.seq) and w.run_at <= ${NOW}
           order by w.run_at, w.seq limit q.quota for update skip locked) w
        where exists (select from ${s}.worker where id = $1 and not given_up) and exists (select from ${s}.control where version = $3)
          and ($13::bigint is null or not exists (select from ${s}.waiting where lane < $13))
          and set_config('synchronous_commit', 'off', true) is not null
        limit $6))
      returning lane, run_at, seq, epoch)`,
  );
}

/** The same under the name that its plan is kept by. */
export function claimStatement(s: string): PostgresStatement {
  return { name: "claim", text: claimText(s) };
}

/** The same for lanes of groups. */
export function groupClaimText(s: string): string {
  return claimOf(s, takenOfGroups(s));
}

/** Places of columns in what a claim answers. */
const [LANE, SEQ, NOW_AT, REST, KEEP_AT, TRACE] = [7, 8, 9, 10, 11, 12] as const;

/** Notes the claim of what is `taken`, and reads its jobs. Lanes come by their numbers, so that the turn of each is found fast. */
function claimOf(s: string, taken: string): string {
  return `with ${taken},
    spent as (delete from ${s}.claim where worker = $1 and nonce = any($9::text[]) and exists (select from taken)),
    noted as (
      insert into ${s}.claim (worker, nonce, ticket, started, at, seqs, epochs)
      select $1, $7, $8::bigint, $2::bigint, ${NOW}, array_agg(seq), array_agg(epoch + 1)
      from (select * from taken order by ($10::int[])[width_bucket(lane, $4::bigint[])], run_at, seq) as in_order having count(*) > 0)
    select j.id, j.payload, j.epoch + 1, j.run_at, nullif(j.due_at, j.run_at), nullif(j.created_at, j.run_at), j.max_attempts,
      j.lane, j.seq, case when j.seq = (select min(seq) from taken) then ${NOW} end, ${rest(s)}, ${keepText("j.keep_ms", "j.keep_dead_ms")},
      j.trace
    from ${s}.job j where j.seq = any(array(select seq from taken))`;
}

type Take = (ask: Ask, request: ClaimRequest, quotas: readonly Quota[], taken: number) => Promise<PostgresValue[][]>;

/** Takes one part of a claim; answers the rows of its jobs in their order. */
function partTaker({ s, lanes }: Context, openClaims: OpenClaims, floors: Floors): Take {
  const claim = claimStatement(s);
  const groupClaim = { name: "claim_groups", text: groupClaimText(s) };
  return async (ask, request, quotas, taken) => {
    const turns = quotas.map(({ lane, limit }, n) => ({ lane, limit, n })).sort((a, b) => a.lane - b.lane);
    const numbers = turns.map(({ lane }) => lane);
    const { worker, startedThrough, control, limit, nonce, ticket, unlessBefore = null } = request;
    const grouped = lanes.remembered(numbers[0] ?? -1)?.group != null;
    const from = grouped ? null : numbers.map((lane) => floors.at(lane));
    const spent = openClaims.spent(worker);
    const rows = await ask(
      grouped ? groupClaim : claim,
      worker,
      startedThrough,
      control,
      numbers,
      turns.map((turn) => turn.limit),
      limit - taken,
      nonce,
      ticket + taken,
      spent,
      turns.map(({ n }) => n),
      ...(from ? [from.map(({ runAt }) => runAt), from.map(({ seq }) => seq), unlessBefore] : []),
    );
    if (rows.length > 0) openClaims.deleted(worker, spent);
    // What a group may not give yet stays where it is.
    if (from)
      for (const row of rows) floors.took(row[LANE] as number, { runAt: row[3] as number, seq: row[SEQ] as number });
    // One row says it for all, unless that one's job was deleted by hand.
    const found = rows.find((row) => row[NOW_AT] !== null)?.[NOW_AT];
    const now = rows.length > 0 ? (found ?? (await ask({ text: `select ${NOW}` }))[0]?.[0]) : null;
    for (const row of rows) row[NOW_AT] = now as number;
    const place = new Map(turns.map(({ lane, n }) => [lane, n]));
    return rows.sort((a, b) => byPlace(a, b, place));
  };
}

/** The verb that takes work. */
export function claimVerb(context: Context, openClaims: OpenClaims, floors: Floors): Store["claim"] {
  const { db, s, lanes } = context;
  const take = partTaker(context, openClaims, floors);
  const why = {
    name: "claim_why",
    // What a claim says about its worker is in its row; one that took nothing has none.
    text: `with ${noteStarted(s, "$1", "$2", "not given_up and set_config('synchronous_commit', 'off', true) is not null")}
      select ${NOW}, exists (select from ${s}.worker where id = $1 and not given_up), (select version from ${s}.control)`,
  };
  return async (request) => {
    const { worker, quotas, limit, nonce } = request;
    for (const { lane } of quotas) if (!lanes.remembered(lane)) await lanes.belonging(lane);
    const parts = segments(quotas, (lane) => lanes.remembered(lane));
    const rows: PostgresValue[][] = [];
    // Each part is a claim of its own, under the same nonce: where a later one fails, all count as a claim whose answer was lost.
    for (const part of parts) if (rows.length < limit) rows.push(...(await take(db.ask, request, part, rows.length)));
    if (rows.length === 0) {
      const [row] = await db.ask(why, worker, request.startedThrough);
      const [now, present, version] = row as [number, boolean, number];
      return { jobs: [], now, refused: present ? (version === request.control ? null : "control") : "worker" };
    }
    const jobs = rows.map((row, at) =>
      claimedJob(row, request, lanes.remembered(row[LANE] as number) as Belonging, at),
    );
    rows.forEach((row, at) => {
      const grouped = jobs[at]?.group !== null;
      openClaims.took(worker, nonce, row[0] as string, { epoch: row[2] as number, seq: row[SEQ] as number, grouped });
    });
    // A claim in several parts is as late as its last one.
    return { jobs, now: rows.at(-1)?.[NOW_AT] as number, refused: null } satisfies ClaimAnswer;
  };
}

function byPlace(a: PostgresValue[], b: PostgresValue[], place: ReadonlyMap<number, number>): number {
  const lanes = (place.get(a[LANE] as number) as number) - (place.get(b[LANE] as number) as number);
  return lanes || (a[3] as number) - (b[3] as number) || (a[SEQ] as number) - (b[SEQ] as number);
}

/**
 * Quotas in order, cut so that no part names a lane or a group twice: a statement would take the same rows, or give the
 * same places, for both. Lanes of groups are not in one part with others.
 */
function segments(quotas: readonly Quota[], belonging: (lane: number) => Belonging | undefined): Quota[][] {
  const parts: Quota[][] = [];
  let names = new Set<number | string>();
  let grouped = false;
  for (const quota of quotas) {
    if (quota.limit === 0) continue;
    const of = belonging(quota.lane);
    const isGrouped = of !== undefined && of.group !== null;
    const name = isGrouped ? groupName(of) : quota.lane;
    if (parts.length === 0 || isGrouped !== grouped || names.has(name)) {
      parts.push([]);
      names = new Set();
    }
    grouped = isGrouped;
    names.add(name);
    parts.at(-1)?.push(quota);
  }
  return parts;
}

function claimedJob(row: PostgresValue[], claim: ClaimRequest, of: Belonging, at: number): ClaimedJob {
  const now = row[NOW_AT] as number;
  const runAt = row[3] as number;
  const job = claimedFrom(of, row[KEEP_AT] as string | null, claim, at);
  job.id = row[0] as string;
  job.payload = row[1] as string;
  job.epoch = row[2] as number;
  job.runAt = runAt;
  job.dueAt = (row[4] as number | null) ?? runAt;
  job.createdAt = (row[5] as number | null) ?? runAt;
  job.updatedAt = job.startedAt = now;
  job.maxAttempts = row[6] as number;
  job.trace = row[TRACE] as string | null;
  if (row[REST] !== null) {
    const [version, limited, maxCrashes, ...more] = JSON.parse(row[REST] as string) as [number, boolean, number];
    Object.assign(job, { version, limited, maxCrashes });
    putRest(job, more);
  }
  return job;
}
