// Lanes, claim and settle in memory: the transitions of a job, written as plainly as possible.
import type { Failure, Lease } from "../../core/job.ts";
import { expiryOf } from "../../core/after-verdict.ts";
import { type ActiveLane, kindOfLane, laneOfKind } from "../../core/lane.ts";
import { failedBy } from "../../core/recovery/outcome.ts";
import type { Verdict } from "../../core/verdict.ts";
import { CauseChanges, NO_WORKER } from "../causes.ts";
import { RedriveChanges } from "../dead-letters.ts";
import type { ClaimedJob, ClaimRequest, Settlement, Signs } from "../store.ts";
import { HISTORY_TAIL, isLease, type Verbs } from "../verbs.ts";
import { tick } from "./causes.ts";
import { leavePlace, leavePlaceToWait, roomOf, takePlace } from "./groups.ts";
import { countRuns, tellLetter } from "./outcomes.ts";
import { forget } from "./retention.ts";
import { belongingOf, jobOf, NOT_SENT, type Row, startWaiting, stopWaiting, type Tables } from "./tables.ts";

/** The verbs that move jobs through their runs. */
export function workVerbs(tables: Tables): Pick<Verbs, "lanes" | "claim" | "settle"> {
  return {
    lanes(after, limit) {
      const now = tables.clock();
      const ahead = [...tables.waiting.keys()].filter((lane) => after === null || lane > after).sort((a, b) => a - b);
      const heads = ahead.slice(0, limit).flatMap((lane) => headOf(tables, lane) ?? []);
      const later = heads.map((head) => head.headRunAt).filter((runAt) => runAt > now);
      return {
        lanes: heads.filter((head) => head.headRunAt <= now),
        next: ahead.length > limit ? (ahead[limit - 1] as number) : null,
        nextRunAt: later.length > 0 ? Math.min(...later) : null,
        now,
        signs: signsOf(tables),
      };
    },
    claim(request) {
      const now = tables.clock();
      const worker = tables.workers.get(request.worker);
      if (!worker || worker.givenUp) return { jobs: [], now, refused: "worker" };
      worker.startedThrough = Math.max(worker.startedThrough, request.startedThrough);
      if (request.control !== tables.controlVersion) return { jobs: [], now, refused: "control" };
      const { unlessBefore = Number.NEGATIVE_INFINITY } = request;
      if ([...tables.waiting.keys()].some((lane) => lane < unlessBefore)) return { jobs: [], now, refused: null };
      return { jobs: takeAll(tables, request, now), now, refused: null };
    },
    settle({ settlements, worker: id, startedThrough = 0, release }) {
      const now = tables.clock();
      const worker = id === undefined ? undefined : tables.workers.get(id);
      if (worker) worker.startedThrough = Math.max(worker.startedThrough, startedThrough);
      const stale: Lease[] = [];
      const changes = new CauseChanges();
      const runs = new RedriveChanges();
      for (const settlement of settlements) {
        const row = isLease(settlement) ? tables.jobs.get(settlement.id) : undefined;
        if (row && row.epoch === settlement.epoch && row.nonce === settlement.nonce) {
          const { verdict } = settlement;
          if ("failure" in verdict)
            changes.add(
              { fingerprint: verdict.failure.fingerprint, type: row.type, release: release ?? "" },
              { failures: 1, deaths: verdict.kind === "dead" ? 1 : 0 },
            );
          apply(tables, row, settlement, now, runs);
        } else stale.push({ id: settlement.id, epoch: settlement.epoch, nonce: settlement.nonce });
      }
      tick(tables, changes, id ?? NO_WORKER, now);
      countRuns(tables, runs, id ?? NO_WORKER);
      return { stale, now };
    },
  };
}

function signsOf({ workers, workersSeen, cells, controlVersion }: Tables): Signs {
  const ends = [...workers.values()].map(({ givenUp, leaseEnd }) => (givenUp ? 0 : leaseEnd));
  const telling = [...cells.values()].filter(({ name, holder }) => name === "" && holder === "");
  return {
    control: controlVersion,
    workers: workers.size,
    newest: workersSeen,
    lapseAt: ends.length === 0 ? null : Math.min(...ends),
    cells: telling.reduce((sum, { version }) => sum + version, 0),
    isHeard: false,
  };
}

/** A lane with the time when its next job is due; null if its group is full. */
function headOf(tables: Tables, lane: number): ActiveLane | null {
  const room = roomOf(tables, lane);
  const next = nextOf(tables, lane, room);
  if (!next) return null;
  const belonging = belongingOf(tables, lane);
  const left = typeof room === "number" ? room : 1;
  return {
    lane,
    kind: kindOfLane(lane),
    headRunAt: next.runAt,
    ...belonging,
    room: belonging.group === null ? null : left,
  };
}

/** The next job of a lane. */
function nextOf(tables: Tables, lane: number, room: number | Row): Row | undefined {
  if (typeof room !== "number") return room;
  return room > 0 ? tables.waiting.get(lane)?.[0] : undefined;
}

function takeAll(tables: Tables, request: ClaimRequest, now: number): ClaimedJob[] {
  const jobs: ClaimedJob[] = [];
  for (const { lane, limit } of request.quotas) {
    for (let taken = 0; taken < limit && jobs.length < request.limit; taken++) {
      const row = tables.waiting.has(lane) ? nextOf(tables, lane, roomOf(tables, lane)) : undefined;
      if (!row || row.runAt > now) break;
      stopWaiting(tables, row);
      takePlace(tables, row);
      tables.running.add(row);
      row.state = "running";
      row.epoch += 1;
      row.nonce = request.nonce;
      row.worker = request.worker;
      row.ticket = request.ticket + jobs.length;
      row.startedAt = row.updatedAt = now;
      jobs.push({ ...jobOf(row), nonce: row.nonce, ticket: row.ticket, said: undefined });
    }
  }
  return jobs;
}

function apply(tables: Tables, row: Row, { verdict, redriven }: Settlement, now: number, runs: RedriveChanges): void {
  row.updatedAt = now;
  if (verdict.kind === "progress") {
    row.progress = verdict.value;
    return;
  }
  judge(tables, row, verdict, now);
  if (redriven) tellLetter(tables, row, failedBy(verdict), runs);
  if (verdict.kind === "complete" && verdict.keep === false) forget(tables, row);
}

function judge(tables: Tables, row: Row, verdict: Verdict, now: number): void {
  tables.running.delete(row);
  row.nonce = null;
  if (verdict.kind !== "release") Object.assign(row, verdict.said);
  if (verdict.kind === "complete") {
    row.result = verdict.result;
    return finish(tables, row, "completed", now);
  }
  if (verdict.kind === "retry" || verdict.kind === "dead") {
    row.attempts += verdict.charge.attempts;
    row.crashes += verdict.charge.crashes;
    row.failure = Object.freeze({ ...verdict.failure });
    remember(tables, row, verdict.kind === "retry" ? verdict.delayMs : null, now);
  }
  if (verdict.kind === "dead") {
    const { id: jobId, generation, attempts, crashes } = row;
    const { reason } = verdict;
    const failure = row.failure as Failure;
    const release = releaseOf(tables, row);
    tables.deaths.push({
      seq: ++tables.sequence,
      jobId,
      generation,
      attempts,
      crashes,
      reason,
      failure,
      release,
      diedAt: now,
      ...NOT_SENT,
    });
    return finish(tables, row, "dead", now);
  }
  if (verdict.kind === "release") row.releases += 1;
  // A job with a requested cancel does not go back to the queue, whatever its run reported.
  if (verdict.kind === "cancel" || row.cancelRequested) return finish(tables, row, "cancelled", now);
  leavePlaceToWait(tables, row);
  row.state = "queued";
  row.runAt = now + verdict.delayMs;
  if (verdict.kind === "retry") {
    row.lastDelayMs = verdict.delayMs;
    row.lane = laneOfKind(row.lane, verdict.lane);
  }
  row.batchMost = verdict.batchMost ?? row.batchMost;
  startWaiting(tables, row);
}

/** Ends a job; its keep times, where known, set when it expires. */
export function finish(tables: Tables, row: Row, state: "completed" | "dead" | "cancelled", now: number): void {
  leavePlace(tables, row);
  row.state = state;
  row.finishedAt = now;
  row.expiresAt = expiryOf(now, state === "dead" ? row.keepDeadMs : row.keepFinishedMs);
}

/** The release of the worker that runs a job; a worker stays known as long as it holds one. */
function releaseOf(tables: Tables, { worker }: Row): string | null {
  return tables.workers.get(worker ?? "")?.release ?? null;
}

function remember(tables: Tables, row: Row, delayMs: number | null, endedAt: number): void {
  const { id: jobId, key, generation, epoch, attempts: attempt, worker, startedAt, failure } = row;
  const release = releaseOf(tables, row);
  if (failure === null) return;
  const all = tables.attempts.get(jobId) ?? [];
  all.push({ jobId, key, generation, epoch, attempt, worker, release, startedAt, endedAt, delayMs, failure });
  const own = all.filter((record) => record.generation === generation);
  const tooMany = own.slice(1, -HISTORY_TAIL);
  tables.attempts.set(
    jobId,
    all.filter((record) => !tooMany.includes(record)),
  );
}
