// Changes redrive runs by hand, and lists them. Every change is written only if the record is still the one that was read,
// so that a driver at work and an operator never overwrite each other.
import { RedriveError } from "../core/errors.ts";
import { subjectOf } from "../core/event-log.ts";
import { checkInteger, checkOneOf } from "../core/new-job.ts";
import { invalid, parseOptions } from "../core/options.ts";
import {
  cancelledRun,
  isDriven,
  isOpenRun,
  pausedRun,
  type RedriveRun,
  resumedRun,
  RUN_STATES,
  type RunState,
} from "../core/recovery/run.ts";
import type { Limits } from "../core/service.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { EventLog } from "../report/event-log.ts";
import type { Page, Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import { listRun, readAllRuns, readRun, runChange } from "../upkeep/run-cells.ts";
import { type RedriveRunView, viewOf } from "./redrive-views.ts";

/** What redrive runs are handled with. */
export interface RedriveDependencies {
  readonly store: Store;
  readonly system: System;
  readonly log: Log;
  readonly eventLog: EventLog;
  /** Who acts. */
  readonly actor: string;
  readonly jobs: readonly JobDefinition[];
  readonly limits: Limits;
}

/** Which runs to list. */
export interface RedriveRunQuery {
  /** Only runs in this state. */
  readonly state?: RunState;
  /** 1 to 200; default 50. */
  readonly limit?: number;
  /** The `next` of the page before. */
  readonly cursor?: string | null;
}

/** Tries to write beside the drivers. */
const TRIES = 20;

/** What an operator may do with a run: the event, the states in which it may be done, and the run after it. */
const CHANGES = {
  pause: {
    kind: "redrive.paused",
    states: ["running"],
    after: (run: RedriveRun, why: string, now: number) => pausedRun(run, why, now),
  },
  resume: {
    kind: "redrive.resumed",
    states: ["paused"],
    after: (run: RedriveRun, _: string, now: number) => resumedRun(run, now),
  },
  cancel: {
    kind: "redrive.cancelled",
    states: ["running", "paused"],
    after: (run: RedriveRun, why: string, now: number) => cancelledRun(run, why, false, now),
  },
  recall: {
    kind: "redrive.recalled",
    states: RUN_STATES,
    after: (run: RedriveRun, why: string, now: number) => cancelledRun(run, why, true, now),
  },
} as const satisfies Record<
  string,
  {
    readonly kind: string;
    readonly states: readonly RunState[];
    readonly after: (run: RedriveRun, why: string, now: number) => RedriveRun;
  }
>;

/** What an operator may do. */
export type RunChange = keyof typeof CHANGES;

/** Changes a run by hand; refused where its state does not allow it. */
export async function changeRun(
  parts: RedriveDependencies,
  name: RunChange,
  id: string,
  why: unknown,
): Promise<RedriveRun> {
  const { store, eventLog, actor } = parts;
  const { kind, states, after } = CHANGES[name];
  const reason = typeof why === "string" ? `${name} by ${actor}: ${why}` : `${name} by ${actor}`;
  const isAllowed = ({ state }: RedriveRun): boolean => states.some((each) => each === state);
  const before = await runOf(store, id);
  if (!isAllowed(before)) throw refusedChange(before, name, states);
  const action = { kind, subject: subjectOf("redrive", id), why };
  return eventLog.act(action, async () => {
    for (let tries = 0; tries < TRIES; tries++) {
      const { found, now } = await readRun(store, id);
      if (!found) throw noRun(id);
      if (!isAllowed(found.run)) throw refusedChange(found.run, name, states);
      const changed = after(found.run, reason, now);
      const [isWritten] = await store.setCells([runChange(changed, found.version)]);
      if (!isWritten) continue;
      if (isOpenRun(changed) || isDriven(changed)) await listRun(store, { add: [id] });
      return changed;
    }
    throw new RedriveError("store_unavailable", `The drivers of ${id} kept changing it. Try again.`);
  });
}

function refusedChange({ id, state, reason }: RedriveRun, name: string, states: readonly string[]): RedriveError {
  const because = reason === null ? "" : ` (${reason})`;
  const message = `Run ${id} is ${state}${because}; ${name} expects one that is ${states.join(" or ")}.`;
  return new RedriveError("illegal_transition", message, { details: { id, state } });
}

/** The run of this id; rejects with `not_found` if there is none. */
export async function runOf(store: Store, id: string): Promise<RedriveRun> {
  checkRunId("run", id);
  const { found } = await readRun(store, id);
  if (!found) throw noRun(id);
  return found.run;
}

/** Throws for what cannot be the id of a run or plan. */
export function checkRunId(what: string, id: unknown): void {
  if (typeof id === "string" && id !== "" && id.length <= 64 && id.isWellFormed() && !id.includes("\0")) return;
  throw invalid("id", `the id of a ${what}`, id, "copy it from where it was made");
}

/** The error for an unknown run. */
export function noRun(id: string): RedriveError {
  const message = `There is no redrive run ${JSON.stringify(id.slice(0, 80))} in this store. List them with redrive redrives list.`;
  return new RedriveError("not_found", message, { details: { id } });
}

/** A page of runs. */
export async function listRuns(store: Store, query: RedriveRunQuery = {}): Promise<Page<RedriveRunView>> {
  const { state, limit = 50, cursor = null } = parseOptions(query, ["state", "limit", "cursor"], "redrives");
  if (state !== undefined) checkOneOf("state", state as string, RUN_STATES);
  checkInteger("limit", limit, 1, 200);
  if (cursor !== null) checkRunId("run", cursor);
  const newestFirst = (a: RedriveRun, b: RedriveRun): number => b.startedAt - a.startedAt || (a.id < b.id ? 1 : -1);
  const all = (await readAllRuns(store)).runs.map(({ run }) => run).toSorted(newestFirst);
  const from = cursor === null ? 0 : all.findIndex(({ id }) => id === cursor) + 1;
  const matching = all.slice(from).filter((run) => state === undefined || run.state === state);
  const runs = matching.slice(0, limit as number);
  const counts = runs.length === 0 ? [] : await store.redriveCounts(runs.map(({ id }) => id));
  const items = runs.flatMap((run, at) => {
    const own = counts[at];
    return own ? [viewOf(run, own)] : [];
  });
  return { items, next: matching.length > runs.length ? (runs.at(-1)?.id ?? null) : null };
}
