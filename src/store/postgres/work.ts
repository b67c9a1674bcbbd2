// Lanes and claim on Postgres. Both search `waiting` by its one index, (lane, run_at, seq), so their cost follows what
// they return, not what waits, is parked, or is finished.
import { groupName } from "../../core/group.ts";
import type { Belonging } from "../../core/job.ts";
import { type ActiveLane, kindOfLane } from "../../core/lane.ts";
import type { Quota } from "../../core/plan.ts";
import { failureFromText } from "../rows.ts";
import type { ClaimAnswer, ClaimedJob, ClaimRequest, Store } from "../store.ts";
import { lastStack } from "./columns.ts";
import { type Context, NOW } from "./context.ts";
import type { Ask, Cell } from "./driver.ts";
import type { Floors, FullLook } from "./floors.ts";
import { takenOfGroups, withRoom } from "./groups.ts";
import { belongingFrom } from "./lanes.ts";
import type { Ledger } from "./ledger.ts";
import { openQuarantine } from "./quarantine.ts";

/** Less than any number a lane can have. */
const BELOW_ALL_LANES = -1;

/** The statement that finds the head of every lane; always answers a row, for its time and for how long it took. */
export function lanesText(s: string): string {
  // The head of the next lane is one step down the index, however many jobs lie between.
  return `select h.lane, h.run_at, ${NOW}, h.seq, extract(milliseconds from clock_timestamp() - statement_timestamp())::int,
      l.type, l.queue, l.service, l.tenant, l.group_key, l.group_concurrency, l.priority, r.room, r.run_at
    from (select) as always left join (
      select n.lane, n.run_at, n.seq from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) as p (lane, run_at, seq, below)
      cross join lateral (
        with recursive head as (
          (select w.lane, w.run_at, w.seq from ${s}.waiting w
           where (w.lane, w.run_at, w.seq) >= (p.lane, p.run_at, p.seq) and w.lane < p.below order by w.lane, w.run_at, w.seq limit 1)
          union all
          select n.lane, n.run_at, n.seq from head cross join lateral
            (select w.lane, w.run_at, w.seq from ${s}.waiting w where w.lane > head.lane and w.lane < p.below
             order by w.lane, w.run_at, w.seq limit 1) n)
        select lane, run_at, seq from head) n limit $5) h on true
    left join lateral (select * from ${s}.lane where base = h.lane - h.lane % 4 limit 1) l on true
    ${withRoom(s)} order by h.lane`;
}

/** The verb that looks for lanes with work. */
export function lanesVerb(context: Context, floors: Floors): Store["lanes"] {
  const { db, s, lanes } = context;
  const aside = openQuarantine(context);
  const heads = { name: "lanes", text: lanesText(s) };
  const look: Store["lanes"] = async (from, limit) => {
    const after = from ?? BELOW_ALL_LANES;
    const stretches = floors.stretches(after);
    const all = await db.ask(
      heads,
      stretches.map(({ lane }) => lane),
      stretches.map(({ runAt }) => runAt),
      stretches.map(({ seq }) => seq),
      stretches.map(({ below }) => below),
      limit + 1,
    );
    const now = all[0]?.[2] as number;
    const rows = all.filter(([lane]) => lane !== null);
    const active: ActiveLane[] = [];
    let nextRunAt: number | null = null;
    for (const row of rows.slice(0, limit)) {
      if (row[5] === null) {
        await aside();
        continue;
      }
      const belonging = belongingFrom(row.slice(5));
      const [lane, room, heldRunAt] = [row[0], row[12], row[13]] as [number, number | null, number | null];
      lanes.remember(lane, belonging);
      if (room === 0) continue;
      const headRunAt = heldRunAt ?? (row[1] as number);
      if (headRunAt <= now) active.push({ lane, kind: kindOfLane(lane), headRunAt, ...belonging, room });
      else nextRunAt = Math.min(headRunAt, nextRunAt ?? headRunAt);
    }
    const next = rows.length > limit ? (rows[limit - 1]?.[0] as number) : null;
    if (stretches.length === 1) floors.looked(fullLook(all, rows, after, next, lanes.numbers()));
    // Nothing is empty because of a floor.
    else if (active.length === 0 && next === null) {
      floors.forget();
      return look(from, limit);
    }
    return { lanes: active, next, nextRunAt, now };
  };
  return look;
}

function fullLook(
  all: Cell[][],
  rows: Cell[][],
  after: number,
  through: number | null,
  known: Iterable<number>,
): FullLook {
  const heads = new Map(rows.map((row) => [row[0] as number, { runAt: row[1] as number, seq: row[3] as number }]));
  const [, , now] = all[0] as Cell[];
  return { after, through, heads, known, now: now as number, tookMs: Math.max(...all.map((row) => row[4] as number)) };
}

/** What most jobs have never used goes as one text, and only where a job has. */
const rest = (s: string): string => `case when j.attempts = 0 and j.crashes = 0 and j.releases = 0 and j.generation = 1
  and j.last_delay_ms = 0 and j.deadline_ms is null and j.stuck_ms is null and j.key is null and j.progress is null
  and j.failure is null then null
  else json_build_array(j.attempts, j.crashes, j.releases, j.generation, j.last_delay_ms, j.deadline_ms, j.stuck_ms, j.key,
    j.progress, j.failure, ${lastStack(s)}, j.stuck_retry_ms, j.stuck_limit, j.batch_most)::text end`;

type Limit = number | null;
type Text = string | null;
type Rest = [number, number, number, number, number, Limit, Limit, Text, Text, Text, Text, Limit, Limit, Limit];
const NO_REST: Rest = [0, 0, 0, 1, 0, null, null, null, null, null, null, null, null, null];

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
          and set_config('synchronous_commit', 'off', true) is not null
        limit $6))
      returning lane, run_at, seq, epoch)`,
  );
}

/** The same for lanes of groups. */
export function groupClaimText(s: string): string {
  return claimOf(s, takenOfGroups(s));
}

/** Notes the claim of what is `taken`, and reads its jobs. Lanes come by their numbers, so that the turn of each is found fast. */
function claimOf(s: string, taken: string): string {
  return `with ${taken},
    spent as (delete from ${s}.claim where worker = $1 and nonce = any($9::text[]) and exists (select from taken)),
    noted as (
      insert into ${s}.claim (worker, nonce, ticket, started, at, seqs, epochs)
      select $1, $7, $8::bigint, $2::bigint, ${NOW}, array_agg(seq), array_agg(epoch + 1)
      from (select * from taken order by ($10::int[])[width_bucket(lane, $4::bigint[])], run_at, seq) as in_order having count(*) > 0)
    select j.id, j.payload, j.epoch + 1, j.run_at, j.due_at, j.created_at, j.max_attempts, j.max_crashes, j.version, j.lane,
      j.seq, ${NOW}, ${rest(s)}, j.limited
    from ${s}.job j where j.seq = any(array(select seq from taken))`;
}

type Take = (ask: Ask, request: ClaimRequest, quotas: readonly Quota[], taken: number) => Promise<Cell[][]>;

/** Takes one part of a claim; answers the rows of its jobs in their order. */
function partTaker({ s, lanes }: Context, ledger: Ledger, floors: Floors): Take {
  const claim = { name: "claim", text: claimText(s) };
  const groupClaim = { name: "claim_groups", text: groupClaimText(s) };
  return async (ask, request, quotas, taken) => {
    const turns = quotas.map(({ lane, limit }, n) => ({ lane, limit, n })).sort((a, b) => a.lane - b.lane);
    const numbers = turns.map(({ lane }) => lane);
    const { worker, startedThrough, control, limit, nonce, ticket } = request;
    const grouped = lanes.remembered(numbers[0] ?? -1)?.group != null;
    const from = grouped ? null : numbers.map((lane) => floors.at(lane));
    const spent = ledger.spent(worker);
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
      ...(from ? [from.map(({ runAt }) => runAt), from.map(({ seq }) => seq)] : []),
    );
    if (rows.length > 0) ledger.deleted(worker, spent);
    // What a group may not give yet stays where it is.
    if (from)
      for (const row of rows) floors.took(row[9] as number, { runAt: row[3] as number, seq: row[10] as number });
    const place = new Map(turns.map(({ lane, n }) => [lane, n]));
    return rows.sort((a, b) => byPlace(a, b, place));
  };
}

/** The verb that takes work. */
export function claimVerb(context: Context, ledger: Ledger, floors: Floors): Store["claim"] {
  const { db, s, lanes } = context;
  const take = partTaker(context, ledger, floors);
  const why = {
    name: "claim_why",
    // What a claim says about its worker is in its row; one that took nothing has none.
    text: `with marked as (update ${s}.worker set started_through = $2
        where id = $1 and not given_up and started_through < $2 and set_config('synchronous_commit', 'off', true) is not null)
      select ${NOW}, exists (select from ${s}.worker where id = $1 and not given_up), (select version from ${s}.control)`,
  };
  return async (request) => {
    const { worker, quotas, limit, nonce } = request;
    for (const { lane } of quotas) if (!lanes.remembered(lane)) await lanes.belonging(lane);
    const parts = segments(quotas, (lane) => lanes.remembered(lane));
    let rows: Cell[][] = [];
    if (limit > 0) {
      if (parts.length <= 1) rows = await take(db.ask, request, parts[0] ?? [], 0);
      else
        rows = await db.together(async (ask) => {
          const all: Cell[][] = [];
          for (const part of parts) if (all.length < limit) all.push(...(await take(ask, request, part, all.length)));
          return all;
        });
    }
    if (rows.length === 0) {
      const [row] = await db.ask(why, worker, request.startedThrough);
      const [now, present, version] = row as [number, boolean, number];
      return { jobs: [], now, refused: present ? (version === request.control ? null : "control") : "worker" };
    }
    const jobs = rows.map((row, at) => claimedJob(row, request, lanes.remembered(row[9] as number) as Belonging, at));
    rows.forEach((row, at) => {
      const grouped = jobs[at]?.group !== null;
      ledger.took(worker, nonce, row[0] as string, { epoch: row[2] as number, seq: row[10] as number, grouped });
    });
    // A claim in several parts is as late as its last one.
    return { jobs, now: rows.at(-1)?.[11] as number, refused: null } satisfies ClaimAnswer;
  };
}

function byPlace(a: Cell[], b: Cell[], place: ReadonlyMap<number, number>): number {
  const lanes = (place.get(a[9] as number) as number) - (place.get(b[9] as number) as number);
  return lanes || (a[3] as number) - (b[3] as number) || (a[10] as number) - (b[10] as number);
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

function claimedJob(row: Cell[], { worker, nonce, ticket }: ClaimRequest, of: Belonging, at: number): ClaimedJob {
  const now = row[11] as number;
  const more = row[12] === null ? NO_REST : (JSON.parse(row[12] as string) as Rest);
  return {
    id: row[0] as string,
    type: of.type,
    queue: of.queue,
    service: of.service,
    tenant: of.tenant,
    group: of.group,
    groupConcurrency: of.groupConcurrency,
    priority: of.priority,
    key: more[7],
    state: "running",
    payload: row[1] as string,
    runAt: row[3] as number,
    dueAt: row[4] as number,
    createdAt: row[5] as number,
    updatedAt: now,
    startedAt: now,
    finishedAt: null,
    attempts: more[0],
    maxAttempts: row[6] as number,
    crashes: more[1],
    maxCrashes: row[7] as number,
    version: row[8] as number,
    limited: row[13] as boolean,
    releases: more[2],
    generation: more[3],
    epoch: row[2] as number,
    worker,
    cancelRequested: false,
    lastDelayMs: more[4],
    deadlineMs: more[5],
    stuckMs: more[6],
    stuckRetryMs: more[11],
    stuckLimit: more[12],
    progress: more[8],
    result: null,
    failure: failureFromText(more[9], more[10]),
    batchMost: more[13],
    nonce,
    ticket: ticket + at,
  };
}
