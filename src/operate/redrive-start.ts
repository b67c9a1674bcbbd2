// Plans a redrive and starts it. A plan is a cell that says which run was started from it, so that two starts of one plan
// make one run.
import { RedriveError } from "../core/errors.ts";
import { subjectOf } from "../core/event-log.ts";
import { stepsFor } from "../core/recovery/canary.ts";
import { PLAN_CELLS, planFrom, planRedrive, type RedrivePlan, staleness } from "../core/recovery/plan.ts";
import { begunRun, isOpenRun, type RedriveRun, RUN_CELLS } from "../core/recovery/run.ts";
import { newRunId } from "../core/recovery/run-id.ts";
import { filterOf, mayOverlap, selectionText } from "../core/recovery/selection.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { readHolding } from "../services/holding.ts";
import type { CellChange, Store } from "../store/store.ts";
import { readAllRuns, readListedRuns, runChange, type StoredRun } from "../upkeep/run-cells.ts";
import { gatherFleet, gatherLetters, openAmong } from "./redrive-plans.ts";
import { checkRunId, type RedriveParts } from "./redrive-changes.ts";
import {
  planOptionsFrom,
  type RedrivePlanOptions,
  type RedriveSelection,
  type RedriveStartOptions,
  selectionFrom,
  startOptionsFrom,
} from "./redrive-selection.ts";

/** Plans are deleted a day after they were made, runs 90 days after their end. */
const PLAN_KEPT_MS = 86_400_000;
const RUN_KEPT_MS = 90 * 86_400_000;
/** Tries to write beside other processes. */
const TRIES = 20;
/** The time that a step may take without a verdict, in timeouts of its types, and its bounds. */
const JUDGE = { timeouts: 10, minMs: 60_000, maxMs: 3_600_000 } as const;

/** Makes a plan. */
export async function makePlan(
  parts: RedriveParts,
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
  const id = newRunId("p", now, system.random);
  const plan = planRedrive(gathered.facts, fleet, {
    id,
    selection: gathered.selection,
    superseded,
    patch,
    by: actor,
    now,
  });
  if (plan.count === 0) return plan;
  const old = cells.filter(({ at }) => now - at > PLAN_KEPT_MS);
  await store.setCells([
    planChange(plan, 0),
    ...old.map(({ kind, name, holder, version }) => ({ kind, name, holder, version, value: null })),
  ]);
  return plan;
}

function planChange(plan: RedrivePlan, version: number): CellChange {
  return { kind: PLAN_CELLS, name: plan.id, holder: "", version, value: JSON.stringify(plan) };
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

/** The plan of this id, with the version of its cell. */
export async function planOf(
  store: Store,
  id: string,
): Promise<{ readonly plan: RedrivePlan; readonly version: number; readonly now: number }> {
  checkRunId("plan", id);
  const { cells, now } = await store.cells([{ kind: PLAN_CELLS, name: id }]);
  const [cell] = cells;
  const plan = cell ? planFrom(cell.value) : null;
  if (cell && plan) return { plan, version: cell.version, now };
  const message = `There is no plan ${JSON.stringify(id.slice(0, 80))} in this store. Check the id and the store, or plan again; a plan is good for 15 minutes.`;
  throw new RedriveError("not_found", message, { details: { id } });
}

/** Starts a run from a plan. */
export async function startRun(
  parts: RedriveParts,
  id: string,
  options: RedriveStartOptions = {},
): Promise<RedriveRun> {
  const { store, system, eventLog, actor } = parts;
  const asked = startOptionsFrom(options);
  const { plan, version, now } = await planOf(store, id);
  await refuseStale(parts, plan, now);
  const run = begunRun({
    id: newRunId("r", now, system.random),
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
  await eventLog.act(action, async () => {
    const [isOurs] = await store.setCells([planChange({ ...plan, started: run.id }, version)]);
    if (!isOurs) throw refusedStart(plan.id, "another process has started it, or changed it, just now");
    await writeNew(store, run, asked.alongside);
  });
  await forgetOld(store);
  return run;
}

async function refuseStale({ store, limits }: RedriveParts, plan: RedrivePlan, now: number): Promise<void> {
  if (plan.started !== null) throw refusedStart(plan.id, `it was started before, as ${plan.started}`);
  const { ids, limit } = plan.selection;
  const [count, holding] = await Promise.all([countOf(store, plan.selection), readHolding(store, limits)]);
  const seen = Math.min(count, limit ?? count);
  const open = openAmong(Object.keys(plan.facts.services), holding).map(({ service }) => service);
  const why = staleness(plan, { count: ids ? count : seen, open }, now);
  if (why !== null) throw refusedStart(plan.id, `${why}; plan again`);
}

async function countOf(store: Store, selection: RedrivePlan["selection"]): Promise<number> {
  if (!selection.ids) return (await store.tally(filterOf(selection))).total;
  return (await store.get(selection.ids)).filter((job) => job?.state === "dead").length;
}

function refusedStart(plan: string, why: string): RedriveError {
  return new RedriveError("illegal_transition", `Plan ${plan} cannot be started: ${why}.`, { details: { plan, why } });
}

function refuseOverlap(run: RedriveRun, runs: readonly StoredRun[]): void {
  const other = runs.find(({ run: each }) => isOpenRun(each) && mayOverlap(each.selection, run.selection))?.run;
  if (!other) return;
  const since = new Date(other.startedAt).toISOString();
  const what = `run ${other.id} of ${other.by}, ${other.state}, started ${since} (${selectionText(other.selection)}), may send the same letters`;
  throw refusedStart(run.plan, `${what}; wait for it, cancel it, or start alongside it`);
}

/** Writes a new run and adds it to the list together; checks again for runs that were started meanwhile. */
async function writeNew(store: Store, run: RedriveRun, alongside: boolean): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    const { listed, listVersion: version, runs } = await readListedRuns(store);
    if (!alongside) refuseOverlap(run, runs);
    const value = JSON.stringify({ listed: [...listed, run.id] });
    const list = { kind: RUN_CELLS, name: "", holder: "", version, value };
    const [isListed] = await store.setCells([list, runChange(run, 0)]);
    if (isListed) return;
    await store.setCells([{ ...runChange(run, 1), value: null }]);
  }
  throw new RedriveError("store_unavailable", "Other processes kept changing the list of runs. Try again.");
}

/** Deletes the records of runs that ended long ago. */
async function forgetOld(store: Store): Promise<void> {
  const { runs, now } = await readAllRuns(store);
  const old = runs.filter(({ run: { endedAt } }) => endedAt !== null && now - endedAt > RUN_KEPT_MS);
  if (old.length > 0)
    await store.setCells(old.map(({ run, version }) => ({ ...runChange(run, version), value: null })));
}

function judgeWithin(jobs: readonly JobDefinition[], types: readonly string[]): number {
  const timeouts = types.map(
    (type) => jobs.find((job) => job.type === type)?.policy.timeoutMs ?? Number.POSITIVE_INFINITY,
  );
  return Math.min(JUDGE.maxMs, Math.max(JUDGE.minMs, JUDGE.timeouts * Math.max(0, ...timeouts)));
}
