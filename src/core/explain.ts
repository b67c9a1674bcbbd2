// Explains why a job is not running: every reason, with what happens next and when. A pure judgement over a snapshot of
// the facts that claims use. It decides nothing, and every reason it names must hold for a claim too.
import { type Budget, type BudgetSettings, initialBudget, tokensIn } from "./budget.ts";
import { formatDuration } from "./duration.ts";
import { beforeText, heldByGroup } from "./group.ts";
import {
  type Holding,
  holdUntilOf,
  isHeld,
  parkedBy,
  type PauseInForce,
  pausesOf,
  type ShownState,
  shownState,
} from "./holding.ts";
import type { Job } from "./job.ts";
import { type ActiveLane, isSuspect, laneKind } from "./lane.ts";
import type { WorkerLoad } from "./load.ts";
import type { RateBucket, RateSettings } from "./rate.ts";
import { isNextRound } from "./round.ts";

/** The kinds of reasons, the decisive ones first; the last two are for jobs that do not wait. */
export const REASON_KINDS = [
  "scheduled",
  "retrying",
  "paused",
  "breaker",
  "hold",
  "group",
  "no_worker",
  "budget",
  "rate_limit",
  "workers_full",
  "behind",
  "suspect",
  "running",
  "finished",
] as const;
/** One of `REASON_KINDS`. */
export type ReasonKind = (typeof REASON_KINDS)[number];

/** One reason why a job is not running. */
export interface Reason {
  /** The kind of reason. */
  readonly kind: ReasonKind;
  /** What holds the job back. */
  readonly message: string;
  /** What happens next. */
  readonly next: string;
  /** When that happens, by the store's clock; null if it is not known. */
  readonly at: number | null;
}

/** Why a job is not running. */
export interface Explanation {
  /** The id of the job. */
  readonly id: string;
  /** Its state as people see it: a stored state, or `scheduled`, `retrying`, `paused` or `parked`. */
  readonly state: ShownState;
  /** The decisive reason as one sentence. */
  readonly summary: string;
  /** Every reason, the decisive one first. */
  readonly reasons: readonly Reason[];
}

/** A limit that spreads starts over time, and the time of the next one. */
export interface SpreadLimit {
  /** `service:pricing`, `tenant:acme`, `type:mail`. */
  readonly name: string;
  /** Null for the ramp of a service that came back. */
  readonly rate: RateSettings | null;
  readonly bucket: RateBucket | null;
}

/** A living worker. */
export interface LivingWorker {
  readonly id: string;
  /**
   * The least number of slots that the jobs under its leases take; how many of them share a batch only the worker
   * knows.
   */
  readonly taken: number;
  /** The slots among them that jobs of this type take. */
  readonly takenByType: number;
  /** What it published about itself; null for a worker that published nothing and may serve anything. */
  readonly load: WorkerLoad | null;
  /** Until when it avoids the job's service because only its own calls fail; 0 for not at all. */
  readonly sickUntil: number;
}

/** All facts that an explanation uses. */
export interface Snapshot extends Holding {
  /** The rate limits that the job is under. */
  readonly rates: readonly SpreadLimit[];
  /** The retry budget of its service; null where there is none. */
  readonly budget: { readonly settings: BudgetSettings; readonly budget: Budget | null } | null;
  readonly workers: readonly LivingWorker[];
  /** The jobs that hold a place in its group. */
  readonly holders: readonly Job[];
  /** Lanes with due work; lanes of lower priority than the job's are not needed. */
  readonly lanes: readonly ActiveLane[];
  /** When the lease of the worker of a running job ends; null where the worker is gone. */
  readonly leaseEnd: number | null;
}

const DUE = "due: the next free slot takes it";

/** Why the job is not running. */
export function explain(job: Job, snapshot: Snapshot): Explanation {
  const reasons = job.state === "queued" ? waitingReasons(job, snapshot) : [otherwise(job, snapshot)];
  return { id: job.id, state: shownState(job, snapshot), summary: reasons[0]?.message ?? DUE, reasons };
}

function waitingReasons(job: Job, snapshot: Snapshot): Reason[] {
  return [
    ...timeReasons(job, snapshot),
    ...pausesOf(job, snapshot).map(pauseReason),
    ...breakerReasons(job, snapshot),
    ...groupReasons(job, snapshot),
    ...workerReasons(job, snapshot, "no_worker"),
    ...budgetReasons(job, snapshot),
    ...rateReasons(snapshot),
    ...workerReasons(job, snapshot, "workers_full"),
    ...orderReasons(job, snapshot),
  ];
}

function timeReasons({ type, runAt, attempts, failure, lastDelayMs }: Job, { now }: Snapshot): Reason[] {
  if (runAt <= now) return [];
  if (isNextRound(type, runAt - now)) {
    const message = "waits for the next round of its batch run";
    const then = "the run begins it when this round is finished; start the same command again if it was stopped";
    return [{ kind: "retrying", message, next: then, at: runAt }];
  }
  const next = `it falls due in ${formatDuration(runAt - now)}`;
  if (attempts === 0) return [{ kind: "scheduled", message: "scheduled for later", next, at: runAt }];
  const why = failure === null ? "" : ` with ${failure.name}`;
  const message = `attempt ${attempts} failed${why}; it waits ${formatDuration(lastDelayMs)} before the next`;
  return [{ kind: "retrying", message, next, at: runAt }];
}

function pauseReason({ kind, name, reason, until }: PauseInForce): Reason {
  const why = reason === "" ? "" : `: ${reason}`;
  const next = until === null ? "it continues when an operator resumes it" : "it continues when the pause ends";
  return { kind: "paused", message: `the ${kind} ${name} is paused${why}`, next, at: until };
}

function breakerReasons(job: Job, snapshot: Snapshot): Reason[] {
  const { service } = job;
  const { now } = snapshot;
  const breaker = parkedBy(job, snapshot);
  const hold = holdUntilOf(job, snapshot);
  const reasons: Reason[] = [];
  if (breaker?.state === "half_open") {
    const message = `the breaker of ${service} is half-open: only probes go through`;
    reasons.push({ kind: "breaker", message, next: "it continues when enough probes have succeeded", at: null });
  } else if (breaker && breaker.state !== "closed") {
    const byHand = breaker.state === "isolated" ? " by hand" : "";
    const message = `the breaker of ${service} was opened${byHand} ${formatDuration(now - breaker.since)} ago: ${breaker.reason}`;
    const probe = "a probe tries the service";
    const next = breaker.until === null ? "it continues when an operator closes the breaker" : probe;
    reasons.push({ kind: "breaker", message, next, at: breaker.until });
  }
  if (hold !== null) {
    const message = `${service} asked to wait ${formatDuration(hold - now)} more (Retry-After)`;
    reasons.push({ kind: "hold", message, next: "its jobs start again", at: hold });
  }
  return reasons;
}

function groupReasons(job: Job, { holders }: Snapshot): Reason[] {
  const before = heldByGroup(job, holders);
  const [first] = before;
  if (!first) return [];
  const message = beforeText(job, before);
  const waits = before.length === 1 && first.state === "queued";
  const next = waits
    ? `${first.id} is retried, and keeps its place until it has ended`
    : "it starts when one has ended";
  return [{ kind: "group", message, next, at: waits ? first.runAt : null }];
}

function workerReasons(job: Job, { workers, now }: Snapshot, kind: "no_worker" | "workers_full"): Reason[] {
  const serving = workers.filter(({ load }) => serves(load, job));
  const able = serving.filter(({ sickUntil }) => sickUntil <= now);
  if (kind === "no_worker") {
    if (able.length > 0) return [];
    const isAnySick = serving.length > 0;
    const at = isAnySick ? Math.min(...serving.map(({ sickUntil }) => sickUntil)) : null;
    return [{ kind, message: whyNobody(job, workers, isAnySick), next: nextWorker(isAnySick), at }];
  }
  if (able.length === 0 || !able.every((worker) => isFull(worker, job.type))) return [];
  const ofType = able.every(({ taken, load }) => load && taken < load.concurrency);
  const what = ofType ? `every slot for ${job.type} is taken` : "every slot is taken";
  const message = `${what} on ${able.length === 1 ? "the worker that serves" : `all ${able.length} workers that serve`} it`;
  return [{ kind, message, next: "it is taken when a slot is free", at: null }];
}

function serves(load: WorkerLoad | null, { type, queue }: Job): boolean {
  if (load === null) return true;
  return load.types.some((served) => served.type === type) && (load.queues === null || load.queues.includes(queue));
}

function isFull({ load, taken, takenByType }: LivingWorker, type: string): boolean {
  if (load === null) return false;
  const own = load.types.find((served) => served.type === type)?.concurrency ?? null;
  return taken >= load.concurrency || (own !== null && takenByType >= own);
}

function whyNobody({ type, queue, service }: Job, workers: readonly LivingWorker[], isAnySick: boolean): string {
  if (workers.length === 0) return "no worker is alive";
  if (isAnySick) return `the workers that serve ${type} fail with ${service} and avoid it for a while`;
  const knows = workers.some(({ load }) => load?.types.some((served) => served.type === type));
  const what = knows ? `the queue ${queue}` : `the type ${type}`;
  return `no living worker serves ${what}; ${workers.length} serve${workers.length === 1 ? "s" : ""} other work`;
}

function nextWorker(isAnySick: boolean): string {
  return isAnySick ? "they try the service again with one job" : "it is taken when a worker starts that serves it";
}

function budgetReasons(job: Job, { budget, now }: Snapshot): Reason[] {
  if (!budget || laneKind(job.attempts, job.crashes, job.maxCrashes) === "first") return [];
  const { settings } = budget;
  const tokens = tokensIn(budget.budget ?? initialBudget(now), settings, now);
  if (tokens >= 1) return [];
  const perMs = settings.floorPerSecond / 1000;
  const share = `${Math.round(settings.share * 100)} % of successes and ${settings.floorPerSecond} a second`;
  return [
    {
      kind: "budget",
      message: `the retry budget of ${job.service} is used up: ${share}`,
      next: perMs > 0 ? "the budget refills with time" : "the budget refills when other jobs succeed",
      at: perMs > 0 ? Math.ceil(now + (1 - tokens) / perMs) : null,
    },
  ];
}

function rateReasons({ rates, now }: Snapshot): Reason[] {
  return rates.flatMap(({ name, rate, bucket }): Reason[] => {
    if (!bucket || bucket.nextAt <= now) return [];
    const what = name.replace(":", " ");
    const message = rate
      ? `the rate limit of ${what} is used up: ${rate.limit} per ${formatDuration(rate.perMs)}`
      : `the load of ${what} rises slowly after an outage`;
    return [{ kind: "rate_limit", message, next: "the next start is free", at: Math.ceil(bucket.nextAt) }];
  });
}

/** The jobs taken before it, and whether it is taken alone; only for a job that nothing else holds back. */
function orderReasons(job: Job, snapshot: Snapshot): Reason[] {
  if (job.runAt > snapshot.now || isHeld(job, snapshot) || heldByGroup(job, snapshot.holders).length > 0) return [];
  const reasons: Reason[] = [];
  const kind = laneKind(job.attempts, job.crashes, job.maxCrashes);
  const open = snapshot.lanes.filter((lane) => !isHeld(lane, snapshot) && isServedWith(lane, job, snapshot));
  const higher = open.filter(({ priority }) => priority > job.priority);
  const tenants = new Set(open.filter(({ priority }) => priority === job.priority).map(({ tenant }) => tenant));
  tenants.delete(job.tenant);
  const ahead = [
    ...(higher.length > 0 ? ["work of higher priority is due"] : []),
    ...(tenants.size > 0
      ? [`${tenants.size} other ${tenants.size === 1 ? "tenant takes its" : "tenants take their"} turns`]
      : []),
    ...(open.some((lane) => isOlder(lane, job, kind)) ? ["older jobs of its kind are due"] : []),
  ];
  const next = "it is taken when its turn comes";
  if (ahead.length > 0) reasons.push({ kind: "behind", message: `due: ${ahead.join("; ")}`, next, at: null });
  if (!isSuspect(kind)) return reasons;
  const workers = job.crashes === 1 ? "a worker died" : `${job.crashes} workers died`;
  const how = kind === "last" ? "in a child process, or when a worker has no other job" : "singly, beside others";
  reasons.push({ kind: "suspect", message: `${workers} while it ran`, next: `it is taken ${how}`, at: null });
  return reasons;
}

/** True for a lane that competes with the job for slots of a worker. */
function isServedWith(lane: ActiveLane, job: Job, { workers }: Snapshot): boolean {
  return workers.some(({ load }) => serves(load, job) && serves(load, { ...job, type: lane.type, queue: lane.queue }));
}

function isOlder(lane: ActiveLane, job: Job, kind: ActiveLane["kind"]): boolean {
  const isOwn = (["type", "queue", "service", "tenant", "priority", "group", "groupConcurrency"] as const).every(
    (field) => lane[field] === job[field],
  );
  return isOwn && lane.kind === kind && lane.headRunAt < job.runAt;
}

/** The reason for a job that does not wait. */
function otherwise(job: Job, { now, leaseEnd }: Snapshot): Reason {
  if (job.state !== "running") {
    const how = job.failure === null || job.state !== "dead" ? "" : ` of ${job.failure.name}`;
    const word = job.state === "dead" ? `died${how}` : job.state === "cancelled" ? "was cancelled" : "completed";
    const next = job.state === "dead" ? "nothing, unless an operator retries it" : "nothing";
    return { kind: "finished", message: `it ${word}`, next, at: job.finishedAt };
  }
  const since = job.startedAt === null ? "" : ` for ${formatDuration(Math.max(0, now - job.startedAt))}`;
  if (leaseEnd === null || leaseEnd <= now) {
    const message = `it ran on ${job.worker}, which no longer responds`;
    return { kind: "running", message, next: "another worker finds it and decides whether to retry it", at: null };
  }
  const next = job.cancelRequested ? "it was asked to stop" : "it ends, or its timeout ends it";
  return { kind: "running", message: `it has been running${since} on ${job.worker}`, next, at: null };
}
