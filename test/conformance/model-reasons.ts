// Whether explanations are true. A small oracle says from the contents of a store what holds each waiting job; it looks at
// jobs where the explanation looks at lanes. And a claim that wants everything takes exactly what nothing holds.
import { isDeepStrictEqual } from "node:util";
import type { ReasonKind } from "../../src/core/explain.ts";
import { groupName } from "../../src/core/group.ts";
import type { Job } from "../../src/core/job.ts";
import { type ActiveLane, type LaneKind, laneKind } from "../../src/core/lane.ts";
import { loadFrom, type WorkerLoad } from "../../src/core/load.ts";
import { planClaim } from "../../src/core/claim-plan.ts";
import { initialRecord, recordFrom } from "../../src/core/service-record.ts";
import { explainJob } from "../../src/operate/explain.ts";
import { NO_LIMITS } from "../../src/services/holding.ts";
import type { Store, WorkerRecord } from "../../src/store/store.ts";
import { allLanes, type Dump } from "./model-dump.ts";

type Said = { readonly whenOpen?: string; readonly rate: object | null; readonly budget?: object | null };

/** The contents of a store as the oracle reads them. */
function reading({ control, cells, workers, holders }: Dump) {
  const { now, pauses } = control;
  const value = <T>(kind: string, name: string, holder = ""): T | null => {
    const cell = cells.find((each) => each.kind === kind && each.name === name && each.holder === holder);
    return cell ? (JSON.parse(cell.value) as T) : null;
  };
  const living = workers.filter(({ givenUp, leaseEnd }) => !givenUp && leaseEnd > now);
  /** The last word of those that live. */
  const lastWord = (name: string): Said | null => {
    const words = cells.filter((cell) => cell.kind === "settings" && cell.name === name);
    const valid = words.filter(({ holder }) => living.some(({ id }) => id === holder));
    const last = valid.findLast(({ at }) => valid.every((other) => other.at <= at));
    return last ? (JSON.parse(last.value) as Said) : null;
  };
  const said = (kind: string, name: string): Said | null =>
    lastWord(`${kind}:${name}`) ?? (kind === "type" ? null : lastWord(`${kind}:*`));
  const record = recordFrom(control.services.find(({ name }) => name === "s")?.value ?? JSON.stringify(initialRecord));
  const ofService = said("service", "s");
  const isOut = (name: string): boolean => (value<{ nextAt: number }>("rate", name)?.nextAt ?? 0) > now;
  const isRamping = record.breaker.state === "closed" && record.breaker.rampUntil > now;
  const loadOf = (worker: string): WorkerLoad | null => {
    const cell = cells.find(({ kind, holder }) => kind === "load" && holder === worker);
    return cell ? loadFrom(cell.value) : null;
  };
  return {
    now,
    paused: pauses.filter(({ until }) => until === null || until > now),
    isParking: record.breaker.state !== "closed" && (ofService?.whenOpen ?? "park") === "park",
    isOnHold: record.holdUntil > now,
    isOutOfRetries: Boolean(ofService?.budget) && (value<{ tokens: number }>("budget", "s")?.tokens ?? 0) < 1,
    /** The names of limits that allow no start now. */
    spent: [
      ...(said("type", "a")?.rate && isOut("type:a") ? ["type:a"] : []),
      ...["t1", "t2"].filter((t) => said("tenant", t)?.rate && isOut(`tenant:${t}`)).map((t) => `tenant:${t}`),
      ...((ofService?.rate || isRamping) && isOut("service:s") ? ["service:s"] : []),
    ],
    /** True where as many others hold a place in the group of the job as may. */
    isGroupFull: (job: Job): boolean => {
      const isOther = ({ id, type, group }: Job): boolean => id !== job.id && type === job.type && group === job.group;
      return job.group !== null && holders.flat().filter(isOther).length >= (job.groupConcurrency as number);
    },
    living,
    loadOf,
    isSick: ({ id }: WorkerRecord): boolean =>
      (value<{ sickUntil: number }>("evidence", "s", id)?.sickUntil ?? 0) > now,
  };
}

type Reading = ReturnType<typeof reading>;

const kindOf = ({ attempts, crashes, maxCrashes }: Job): LaneKind => laneKind(attempts, crashes, maxCrashes);
const names = ({ type, queue, service, tenant }: Job): string[] => [
  `type:${type}`,
  `queue:${queue}`,
  `service:${service}`,
  `tenant:${tenant}`,
];

/** What two jobs of one lane have in common. */
const placeOf = (job: Job): unknown[] => [
  names(job),
  kindOf(job),
  job.priority,
  job.group === null ? null : [job.group, job.groupConcurrency],
];

const serves = ({ loadOf }: Reading, { id }: WorkerRecord, job: Job): boolean => {
  const load = loadOf(id);
  if (!load) return true;
  return load.types.some(({ type }) => type === job.type) && (load.queues?.includes(job.queue) ?? true);
};

const isHeldByFleet = (job: Job, seen: Reading): boolean =>
  seen.paused.some(({ kind, name }) => names(job).includes(`${kind}:${name}`)) ||
  (job.service !== null && (seen.isParking || seen.isOnHold));

/** The reasons for which a job waits. */
function oracle(job: Job, jobs: readonly Job[], seen: Reading): ReasonKind[] {
  const { now, paused, living, spent } = seen;
  const kinds: ReasonKind[] = [];
  if (job.runAt > now) kinds.push(job.attempts === 0 ? "scheduled" : "retrying");
  for (const { kind, name } of paused) if (names(job).includes(`${kind}:${name}`)) kinds.push("paused");
  if (job.service !== null && seen.isParking) kinds.push("breaker");
  if (job.service !== null && seen.isOnHold) kinds.push("hold");
  if (seen.isGroupFull(job)) kinds.push("group");
  const serving = living.filter((worker) => serves(seen, worker, job));
  const able = serving.filter((worker) => job.service === null || !seen.isSick(worker));
  if (able.length === 0) kinds.push("no_worker");
  if (job.service !== null && kindOf(job) !== "first" && seen.isOutOfRetries) kinds.push("budget");
  for (const name of spent) if (names(job).includes(name)) kinds.push("rate_limit");
  const isFull = (worker: WorkerRecord): boolean => {
    const load = seen.loadOf(worker.id);
    if (!load) return false;
    const served = (name: string) => load.types.find(({ type }) => type === name);
    const running = jobs.filter((each) => each.state === "running" && each.worker === worker.id);
    const slotsOf = (name: string): number =>
      Math.ceil(running.filter(({ type }) => type === name).length / (served(name)?.batch ?? 1));
    const own = served(job.type)?.concurrency ?? Number.POSITIVE_INFINITY;
    return slotsOf("a") + slotsOf("b") >= load.concurrency || slotsOf(job.type) >= own;
  };
  if (able.length > 0 && able.every(isFull)) kinds.push("workers_full");
  if (job.runAt > now || isHeldByFleet(job, seen) || seen.isGroupFull(job)) return kinds;
  const rivals = jobs.filter(
    (other) =>
      other.id !== job.id &&
      other.state === "queued" &&
      other.runAt <= now &&
      !isHeldByFleet(other, seen) &&
      !seen.isGroupFull(other) &&
      serving.some((worker) => serves(seen, worker, other)),
  );
  const isSame = (other: Job): boolean => isDeepStrictEqual(placeOf(other), placeOf(job));
  const isAhead = (other: Job): boolean =>
    other.priority > job.priority ||
    (other.priority === job.priority && other.tenant !== job.tenant) ||
    (isSame(other) && other.runAt < job.runAt);
  if (rivals.some(isAhead)) kinds.push("behind");
  if (job.crashes > 0) kinds.push("suspect");
  return kinds;
}

/** Reasons that keep every worker from a job, however empty its hands are. */
const HOLDING = ["scheduled", "retrying", "paused", "breaker", "hold", "group", "no_worker", "budget", "rate_limit"];

function grantsOf(seen: Reading): Map<string, number> {
  return new Map([
    ...seen.paused.map(({ kind, name }) => [`${kind}:${name}`, 0] as const),
    ...(seen.isParking || seen.isOnHold ? [["service:s", 0] as const] : []),
    ...seen.spent.map((name) => [name, 0] as const),
    ...(seen.isOutOfRetries ? [["retry:s", 0] as const] : []),
  ]);
}

const EVERYTHING = { want: 1_000, suspects: 1_000_000, turn: 0 };

/** The lanes from which one of the workers would take, were its hands empty. */
function takenFrom(lanes: readonly ActiveLane[], seen: Reading): Set<number> {
  const all = new Set(["a", "b"]);
  const taken = new Set<number>();
  for (const worker of seen.living) {
    const load = seen.loadOf(worker.id);
    const grants = grantsOf(seen);
    if (seen.isSick(worker)) grants.set("service:s", 0);
    const serving = load ? new Set(load.types.map(({ type }) => type)) : all;
    const queues = load?.queues ? new Set(load.queues) : null;
    for (const { lane } of planClaim(lanes, { ...EVERYTHING, serves: serving, queues, grants })) taken.add(lane);
  }
  return taken;
}

function isSameGroup(other: ActiveLane, lane: ActiveLane): boolean {
  return lane.group !== null && groupName(other) === groupName(lane);
}

function laneOf(lanes: readonly ActiveLane[], job: Job): ActiveLane | undefined {
  return lanes.find((lane) =>
    isDeepStrictEqual(
      [lane.type, lane.queue, lane.service, lane.tenant, lane.group, lane.groupConcurrency, lane.priority, lane.kind],
      [job.type, job.queue, job.service, job.tenant, job.group, job.groupConcurrency, job.priority, kindOf(job)],
    ),
  );
}

/** What is wrong about the explanations of all jobs; empty when they are true. */
export async function wrongReasons(store: Store, contents: Dump): Promise<string[]> {
  const wrong: string[] = [];
  const { jobs } = contents;
  const seen = reading(contents);
  const lanes = await allLanes(store, 100);
  const taken = takenFrom(lanes, seen);
  for (const job of jobs) {
    const { reasons } = await explainJob(store, job, NO_LIMITS);
    const kinds = reasons.map(({ kind }) => kind);
    const expected =
      job.state === "queued" ? oracle(job, jobs, seen) : [job.state === "running" ? "running" : "finished"];
    if (!isDeepStrictEqual(kinds, expected))
      wrong.push(`${job.id} is ${job.state} for ${kinds.join(", ")}; expected ${expected.join(", ")}`);
    // The lane of a job that waits for another of its group may give that other one.
    if (job.state !== "queued" || kinds.includes("group")) continue;
    const lane = job.runAt <= seen.now ? laneOf(lanes, job) : undefined;
    const isTaken = lane !== undefined && taken.has(lane.lane);
    const holds = kinds.some((kind) => HOLDING.includes(kind));
    // Of several lanes of a group a plan takes as many as there is room for.
    const isOtherTaken = lane !== undefined && lanes.some((other) => taken.has(other.lane) && isSameGroup(other, lane));
    if (holds ? isTaken : !isTaken && !isOtherTaken)
      wrong.push(`${job.id} waits for ${kinds.join(", ")} and ${isTaken ? "can" : "cannot"} be taken`);
  }
  return wrong;
}

/** Claims everything that nothing holds for the fleet, and says where that is not what explanations said before. */
export async function claimsDiffer(store: Store, contents: Dump): Promise<string[]> {
  const seen = reading(contents);
  const free: string[] = [];
  for (const job of contents.jobs) {
    const { reasons } = await explainJob(store, job, NO_LIMITS);
    const holds = HOLDING.filter((kind) => kind !== "no_worker");
    if (job.state === "queued" && !reasons.some(({ kind }) => holds.includes(kind))) free.push(job.id);
  }
  await store.register({ id: "last", leaseMs: 60_000, pid: 1, host: "h", release: null });
  const appetite = { ...EVERYTHING, serves: new Set(["a", "b"]), queues: null, grants: grantsOf(seen) };
  const { jobs } = await store.claim({
    worker: "last",
    quotas: planClaim(await allLanes(store, 100), appetite),
    limit: 1_000,
    nonce: "last",
    control: contents.control.version,
    ticket: 1_000_000,
    startedThrough: 0,
  });
  const took = new Set(jobs.map(({ id }) => id));
  // Of a group as many are taken as there is room for: one at least where nothing held it.
  const groups = new Set(jobs.map(groupName));
  const isSpared = (id: string): boolean => {
    const job = contents.jobs.find((each) => each.id === id) as Job;
    return job.group !== null && groups.has(groupName(job));
  };
  return [
    ...free.filter((id) => !took.has(id) && !isSpared(id)).map((id) => `nothing held ${id}, and it was not taken`),
    ...[...took].filter((id) => !free.includes(id)).map((id) => `${id} was held, and was taken`),
  ];
}
