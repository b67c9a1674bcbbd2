// Plans a redrive and starts it. The id of a run follows from that of its plan, so that two starts of one plan make one
// run; a start that is refused leaves the plan as it was.
import { isRedriveError, RedriveError } from "../core/errors.ts";
import { subjectOf } from "../core/event-log.ts";
import { stepsFor } from "../core/recovery/canary.ts";
import {
  PLAN_CELLS,
  planFrom,
  planRedrive,
  type RedrivePlan,
  staleness,
  type StartFacts,
} from "../core/recovery/plan.ts";
import { begunRun, isOpenRun, type RedriveRun, RUN_CELLS } from "../core/recovery/run.ts";
import { newPlanId, runIdOf } from "../core/recovery/run-id.ts";
import { mayOverlap, selectionText } from "../core/recovery/selection.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { readHolding } from "../services/holding.ts";
import type { Store } from "../store/store.ts";
import { rangeOf, walkLetters } from "../upkeep/redrive-letters.ts";
import {
  forgetOldRuns,
  readListedRuns,
  readRun,
  runChange,
  type StoredRun,
  writeUnlisted,
} from "../upkeep/run-cells.ts";
import { countLetters } from "./letter-counts.ts";
import { gatherFleet, gatherLetters, openAmong } from "./redrive-plans.ts";
import { checkRunId, type RedriveDependencies } from "./redrive-changes.ts";
import {
  planOptionsFrom,
  type RedrivePlanOptions,
  type RedriveSelection,
  type RedriveStartOptions,
  selectionFrom,
  startOptionsFrom,
} from "./redrive-selection.ts";

/** Plans are deleted a day after they were made. */
const PLAN_KEPT_MS = 86_400_000;
/** Tries to write beside other processes. */
const TRIES = 20;
/** The time that a step may take without a verdict, in timeouts of its types, and its bounds. */
const JUDGE = { timeouts: 10, minMs: 60_000, maxMs: 3_600_000 } as const;

/** Makes a plan. */
export async function makePlan(
  parts: RedriveDependencies,
  given: RedriveSelection,
  options: RedrivePlanOptions = {},
): Promise<RedrivePlan> {
  const { store, system, actor } = parts;
  const asked = selectionFrom(given);
  const { superseded, patch, skipMisfits } = planOptionsFrom(options);
  const { cells, now } = await store.cells([{ kind: PLAN_CELLS }]);
  const gathered = await gatherLetters(parts, asked, { now, patch });
  if (gathered.facts.count === 0) await refuseUnknownCause(store, asked.fingerprint);
  if (gathered.misfits.length > 0 && !skipMisfits) throw misfitting(gathered.misfits);
  const fleet = await gatherFleet(parts, gathered, now);
  const { selection } = gathered;
  const plan = (): RedrivePlan =>
    planRedrive(gathered.facts, fleet, {
      id: newPlanId(now, system.random),
      selection,
      superseded,
      patch,
      by: actor,
      now,
    });
  if (gathered.facts.count === 0) return plan();
  const old = cells.filter(({ at }) => now - at > PLAN_KEPT_MS);
  if (old.length > 0)
    await store.setCells(old.map(({ kind, name, holder, version }) => ({ kind, name, holder, version, value: null })));
  return writePlan(store, plan);
}

/** Writes a plan under an id that no other has. */
async function writePlan(store: Store, make: () => RedrivePlan): Promise<RedrivePlan> {
  for (let tries = 0; tries < TRIES; tries++) {
    const plan = make();
    const value = JSON.stringify(plan);
    const [isWritten] = await store.setCells([{ kind: PLAN_CELLS, name: plan.id, holder: "", version: 0, value }]);
    if (isWritten) return plan;
  }
  throw new RedriveError("store_unavailable", "No plan could be written. Try again.");
}

async function refuseUnknownCause(store: Store, fingerprint: string | undefined): Promise<void> {
  if (fingerprint === undefined) return;
  const { items } = await store.causes({ fingerprint, idle: true, limit: 1 });
  if (items.length > 0) return;
  const message = `There is no cause ${JSON.stringify(fingerprint.slice(0, 80))} in this store. List them with redrive dlq causes.`;
  throw new RedriveError("not_found", message, { details: { fingerprint } });
}

function misfitting(misfits: readonly string[]): RedriveError {
  const shown = misfits.slice(0, 5).join(", ");
  const more = misfits.length > 5 ? ` and ${misfits.length - 5} more` : "";
  const what = misfits.length === 1 ? "1 that does not" : `${misfits.length} that do not`;
  const message = `plan.patch: expected payloads that fit their types; got ${what}: ${shown}${more}; change the patch, or leave them out with skipMisfits`;
  return new RedriveError("invalid_payload", message, { details: { ids: misfits } });
}

/** The plan of this id, with the run that was started from it; null where there is none. */
async function findPlan(
  store: Store,
  id: string,
): Promise<{ readonly plan: RedrivePlan | null; readonly now: number }> {
  checkRunId("plan", id);
  const [{ cells, now }, { found }] = await Promise.all([
    store.cells([{ kind: PLAN_CELLS, name: id }]),
    readRun(store, runIdOf(id)),
  ]);
  const plan = planFrom(cells[0]?.value ?? "");
  return { plan: plan && { ...plan, started: found?.run.id ?? null }, now };
}

/** The plan of this id; rejects with `not_found` if there is none. */
export async function planOf(store: Store, id: string): Promise<RedrivePlan> {
  const { plan } = await findPlan(store, id);
  if (plan) return plan;
  const message = `There is no plan ${JSON.stringify(id.slice(0, 80))} in this store. Check the id and the store, or plan again.`;
  throw new RedriveError("not_found", message, { details: { id } });
}

/** Starts a run from a plan. */
export async function startRun(
  parts: RedriveDependencies,
  id: string,
  options: RedriveStartOptions = {},
): Promise<RedriveRun> {
  const { store, eventLog, actor } = parts;
  const asked = startOptionsFrom(options);
  const { plan, now } = await findPlan(store, id);
  if (plan === null)
    throw refusedStart(
      id.slice(0, 80),
      "this store has no such plan (a plan without letters is not kept); check the id and the store, or plan again",
    );
  await refuseStale(parts, plan, now);
  const run = begunRun({
    id: runIdOf(plan.id),
    plan: plan.id,
    selection: plan.selection,
    count: plan.count,
    toSend: plan.toSend,
    by: actor,
    why: (asked.why as string | undefined) ?? null,
    startedAt: now,
    steps: stepsFor(asked.steps, plan.toSend),
    rate: asked.rate ?? plan.rate,
    judgeWithinMs: asked.judgeWithinMs ?? judgeWithin(parts.jobs, Object.keys(plan.facts.types)),
    tolerate: asked.tolerate,
    superseded: plan.superseded,
    patch: plan.patch,
    misfits: plan.misfits,
  });
  if (!asked.alongside) refuseOverlap(run, (await readListedRuns(store)).runs);
  const { selection, toSend, steps, rate } = run;
  const details = { plan: plan.id, selection: selectionText(selection), toSend, steps, rate };
  const action = { kind: "redrive.started", subject: subjectOf("redrive", run.id), why: asked.why, details };
  await eventLog.act(action, () => begin(store, run, asked.alongside));
  await forgetOldRuns(store);
  return run;
}

async function refuseStale({ store, limits }: RedriveDependencies, plan: RedrivePlan, now: number): Promise<void> {
  const { started } = plan;
  if (started !== null)
    throw refusedStart(plan.id, `it was started before, as ${started}; look at that run, or plan again`);
  const [count, holding] = await Promise.all([countOf(store, plan), readHolding(store, limits)]);
  const open = openAmong(Object.keys(plan.facts.services), holding).map(({ service }) => service);
  const why = staleness(plan, { ...count, open }, now);
  if (why !== null) throw refusedStart(plan.id, `${why}; plan again`);
}

/** How many letters of a plan match still, and how many others match now. */
async function countOf(
  store: Store,
  { selection, facts, at }: RedrivePlan,
): Promise<Pick<StartFacts, "count" | "come">> {
  const { ids } = selection;
  if (ids) {
    const { letters } = await walkLetters(store, selection, { cursor: null, limit: ids.length, payloads: false });
    return { count: letters.length, come: 0 };
  }
  if (facts.looked < facts.count) return countLetters(store, selection, at, facts.count);
  const { through: _, ...all } = rangeOf(selection);
  const { total: count } = await store.tally(rangeOf(selection));
  return { count, come: Math.max(0, (await store.tally(all)).total - count) };
}

function refusedStart(plan: string, why: string): RedriveError {
  return new RedriveError("illegal_transition", `Plan ${plan} cannot be started: ${why}.`, { details: { plan, why } });
}

function refuseOverlap(run: RedriveRun, runs: readonly StoredRun[]): void {
  const other = runs.find(
    ({ run: each }) => each.id !== run.id && isOpenRun(each) && mayOverlap(each.selection, run.selection),
  )?.run;
  if (!other) return;
  const since = new Date(other.startedAt).toISOString();
  const what = `run ${other.id} of ${other.by}, ${other.state}, started ${since} (${selectionText(other.selection)}), may send the same letters`;
  throw refusedStart(run.plan, `${what}; wait for it, cancel it, or start alongside it`);
}

/** Begins a run: its record is written first, so that two starts which see each other's are refused, and then listed. */
async function begin(store: Store, run: RedriveRun, alongside: boolean): Promise<void> {
  const version = await writeUnlisted(store, run);
  if (version === null)
    throw refusedStart(
      run.plan,
      "another process has started it, or does so just now; look at the runs, or try again in 10s",
    );
  try {
    for (let tries = 0; tries < TRIES; tries++) {
      const { listed, listVersion, runs } = await readListedRuns(store);
      if (listed.includes(run.id)) return;
      if (!alongside) refuseOverlap(run, runs);
      const value = JSON.stringify({ listed: [...listed, run.id] });
      const [isListed] = await store.setCells([{ kind: RUN_CELLS, name: "", holder: "", version: listVersion, value }]);
      if (isListed) return;
    }
    throw new RedriveError("store_unavailable", "Other processes kept changing the list of runs. Try again.");
  } catch (error) {
    // Not where the store failed: it may have listed the run.
    if (isRedriveError(error, "illegal_transition"))
      await store.setCells([{ ...runChange(run, version), value: null }]);
    throw error;
  }
}

function judgeWithin(jobs: readonly JobDefinition[], types: readonly string[]): number {
  const timeouts = types.map(
    (type) => jobs.find((job) => job.type === type)?.policy.timeoutMs ?? Number.POSITIVE_INFINITY,
  );
  return Math.min(JUDGE.maxMs, Math.max(JUDGE.minMs, JUDGE.timeouts * Math.max(0, ...timeouts)));
}
