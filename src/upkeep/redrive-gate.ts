// What would hold back the jobs of dead letters if they were sent now: a pause, a breaker, a service that asked to wait,
// or a job of their group that waits for its retry. And which letter may go as the probe of a breaker.
import { beforeText, groupName, heldByGroup } from "../core/group.ts";
import { holdUntilOf, type Holding, pausesOf } from "../core/holding.ts";
import type { DeadLetter } from "../core/job.ts";
import type { HeldRun } from "../core/recovery/run.ts";
import { BREAKER_WORDS, initialRecord, mayProbe, type ServiceRecord, withoutBreaker } from "../core/service-record.ts";
import type { Limits } from "../core/service.ts";
import { livingAmong, readHolding, settingsFrom, settingsOfServices } from "../services/holding.ts";
import type { Store } from "../store/store.ts";

/** What finding letters needs. */
export interface LetterSource {
  readonly store: Store;
  readonly limits: Limits;
}

/** Lanes read with one call, and calls to find out whether work of a service is due. */
const LANES = 1_000;
const LANE_PAGES = 5;
/** Groups that are looked at in one step of a run, and at the same time. */
const GROUPS = { most: 60, atOnce: 10 } as const;

/** What holds letters back at one moment. */
export interface LetterGate {
  /** What would hold the letter's job back; null for nothing, as far as was looked. */
  held(letter: DeadLetter): HeldRun | null;
  /** True if the letter may be sent although its breaker is not closed: it is the probe that closes it. */
  mayProbe(letter: DeadLetter): Promise<boolean>;
  /** Looks which groups of these letters wait for the retry of another job; of many groups only at the first. */
  lookAtGroups(letters: readonly DeadLetter[]): Promise<void>;
}

/** What holds letters back now. */
export async function openGate({ store, limits }: LetterSource): Promise<LetterGate> {
  const holding = await readHolding(store, limits);
  const blocked = new Map<string, HeldRun | null>();
  const ofGroup = (job: DeadLetter["job"]): HeldRun | null =>
    job.group === null ? null : (blocked.get(groupName(job)) ?? null);
  const gate: LetterGate = {
    held: ({ job }) => heldBy(job, holding, limits) ?? ofGroup(job),
    async mayProbe(letter) {
      const { job } = letter;
      const { service } = job;
      if (service === null || pausesOf(job, holding).length > 0 || holdUntilOf(job, holding) !== null) return false;
      const record = holding.services.get(service);
      if (!record || !(await isProbeDue(store, limits, service, record, holding.now))) return false;
      await gate.lookAtGroups([letter]);
      return ofGroup(job) === null && !(await hasDueWork(store, service));
    },
    async lookAtGroups(letters) {
      const unknown = new Map(letters.map(({ job }) => [groupName(job), job]));
      const jobs = [...unknown]
        .filter(([name, { group }]) => group !== null && !blocked.has(name))
        .map(([, job]) => job);
      const most = Math.max(0, GROUPS.most - blocked.size);
      for (let at = 0; at < Math.min(most, jobs.length); at += GROUPS.atOnce) {
        const part = jobs.slice(at, Math.min(most, at + GROUPS.atOnce));
        const holds = await Promise.all(part.map((job) => groupHold(store, job, holding.now)));
        for (const [place, job] of part.entries()) blocked.set(groupName(job), holds[place] ?? null);
      }
    },
  };
  return gate;
}

/** The job that keeps its place in the letter's group while it waits for a retry; null for none. */
async function groupHold(store: Store, job: DeadLetter["job"], now: number): Promise<HeldRun | null> {
  const { type, group } = job;
  const before = group === null ? [] : heldByGroup(job, await store.holders({ type, group }));
  const [first] = before;
  const isBlocked = before.length === 1 && first?.state === "queued" && first.runAt > now;
  return isBlocked ? { why: beforeText(job, before), until: first.runAt } : null;
}

function heldBy(job: DeadLetter["job"], holding: Holding, limits: Limits): HeldRun | null {
  const [pause] = pausesOf(job, holding);
  if (pause) return { why: `the ${pause.kind} ${pause.name} is paused`, until: pause.until };
  const { service } = job;
  if (service === null) return null;
  const { breaker } = recordOf(service, holding, limits);
  if (breaker.state !== "closed") {
    const until = "until" in breaker ? breaker.until : null;
    return { why: `the breaker of ${service} is ${BREAKER_WORDS[breaker.state]}`, until };
  }
  const hold = holdUntilOf(job, holding);
  return hold === null ? null : { why: `${service} asked to wait`, until: hold };
}

/** The record of a service; where this program knows that it has no breaker, only an opening by hand counts. */
function recordOf(service: string, holding: Holding, limits: Limits): ServiceRecord {
  const record = holding.services.get(service) ?? initialRecord;
  return limits.service(service).breaker === null ? withoutBreaker(record, holding.now) : record;
}

async function isProbeDue(
  store: Store,
  limits: Limits,
  service: string,
  record: ServiceRecord,
  now: number,
): Promise<boolean> {
  const [{ cells }, workers] = await Promise.all([store.cells(settingsOfServices([service])), store.workers()]);
  const { breaker } = settingsFrom(cells, limits, livingAmong(workers, now)).service(service);
  return breaker !== null && mayProbe(record, breaker, now);
}

/** True if a job of the service is due that could be the probe, as far as was looked. */
async function hasDueWork(store: Pick<Store, "lanes">, service: string): Promise<boolean> {
  for (let after: number | null = null, page = 0; page < LANE_PAGES; page++) {
    const { lanes, next } = await store.lanes(after, LANES);
    if (lanes.some((lane) => lane.service === service)) return true;
    if (next === null) return false;
    after = next;
  }
  return true;
}
