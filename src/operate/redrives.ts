// Redrive runs as people handle them: plan, start, look, pause, resume, cancel, recall, follow. Upkeep drives them; a
// follower drives, too, so that a run goes on where no worker is alive.
import { RedriveError } from "../core/errors.ts";
import { parseOptions } from "../core/options.ts";
import type { RedrivePlan } from "../core/recovery/plan.ts";
import { isDriven, type RedriveRun } from "../core/recovery/run.ts";
import type { ActionOptions } from "../report/event-log.ts";
import type { Page } from "../store/store.ts";
import { openRedriveDriver, type RedriveDriver } from "../upkeep/redrives.ts";
import { explainJob } from "./explain.ts";
import {
  changeRun,
  listRuns,
  noRun,
  type RedriveDependencies,
  type RedriveRunQuery,
  type RunChange,
  runOf,
} from "./redrive-changes.ts";
import type { RedrivePlanOptions, RedriveSelection, RedriveStartOptions } from "./redrive-selection.ts";
import { makePlan, planOf, startRun } from "./redrive-start.ts";
import { newDeathsOf, type RedriveRunView, viewOf } from "./redrive-views.ts";

/** How to follow a run. */
export interface FollowOptions {
  /** Ends the following; the run goes on. */
  readonly signal?: AbortSignal;
  /** Called with every change, first with the run as it is. */
  readonly onChange?: (run: RedriveRunView) => void;
  /** False only looks; default true: this process drives the run while it follows. */
  readonly drive?: boolean;
}

/** Sends dead letters back to work step by step: a canary first, the rest at a safe rate. */
export interface Redrives {
  /**
   * What a redrive of these letters would do: how many, what speaks against it, how fast, how long. Changes no job. It may
   * be started for 15 minutes. A plan without letters cannot be started.
   */
  plan(selection: RedriveSelection, options?: RedrivePlanOptions): Promise<RedrivePlan>;
  /** The plan of this id; rejects with `not_found` if there is none. */
  getPlan(id: string): Promise<RedrivePlan>;
  /**
   * Starts a run. Rejects with `illegal_transition` where the store has no such plan, or it was started before, is too
   * old or no longer fits the store, or where another run may send the same letters. A plan that is refused for another
   * run may be started later.
   */
  start(plan: string, options?: RedriveStartOptions): Promise<RedriveRunView>;
  /** The run; rejects with `not_found` if there is none. */
  get(id: string): Promise<RedriveRunView>;
  /** A page of runs, newest first. They are kept for 90 days. */
  list(query?: RedriveRunQuery): Promise<Page<RedriveRunView>>;
  /** Sends nothing more until `resume`; what was sent runs. */
  pause(id: string, options?: ActionOptions): Promise<RedriveRunView>;
  /** Continues a paused run; the clock of its step begins again. */
  resume(id: string, options?: ActionOptions): Promise<RedriveRunView>;
  /** Ends the run: nothing more is sent; what was sent runs. */
  cancel(id: string, options?: ActionOptions): Promise<RedriveRunView>;
  /** Ends the run, and takes back what was sent and no worker has taken: those jobs are dead again. */
  recall(id: string, options?: ActionOptions): Promise<RedriveRunView>;
  /**
   * Waits until the run is completed, stopped, cancelled or paused, and nothing is left to take back. Rejects with
   * `aborted` when the signal fires; the run goes on.
   */
  follow(id: string, options?: FollowOptions): Promise<RedriveRunView>;
  /** Does one step of every run, as workers do; for programs without a worker, and for tests. */
  drive(): Promise<void>;
}

/** How often a follower looks at the run. */
const FOLLOW_MS = 500;

/** The redrive runs of a store. */
export function openRedrives(parts: RedriveDependencies): Redrives {
  const { store } = parts;
  const driver = driverOf(parts, `follower-${parts.system.workerId()}`);
  const view = async (run: RedriveRun, isWhole = true): Promise<RedriveRunView> => {
    const [counts] = await store.redriveCounts([run.id]);
    if (!counts) throw noRun(run.id);
    return viewOf(run, counts, isWhole ? await newDeathsOf(store, run, counts) : null);
  };
  const get = async (id: string, isWhole = true): Promise<RedriveRunView> => view(await runOf(store, id), isWhole);
  const change =
    (name: RunChange) =>
    async (id: string, options: ActionOptions = {}) => {
      const { why } = parseOptions(options, ["why"], name);
      return view(await changeRun(parts, name, id, why));
    };
  return {
    plan: (selection, options) => makePlan(parts, selection, options),
    getPlan: (id) => planOf(store, id),
    start: async (plan, options) => view(await startRun(parts, plan, options)),
    get: (id) => get(id),
    list: (query) => listRuns(store, query),
    pause: change("pause"),
    resume: change("resume"),
    cancel: change("cancel"),
    async recall(id, options) {
      const { id: run } = await change("recall")(id, options);
      await takeBack(parts, driver, run);
      return get(run);
    },
    follow: (id, options) => follow(parts, driver, (isWhole) => get(id, isWhole), options),
    drive: async () => void (await driver.stepAll()),
  };
}

/** A driver of runs for a worker, or for a process that follows one. */
export function driverOf(
  { store, system, log, limits }: Pick<RedriveDependencies, "store" | "system" | "log" | "limits">,
  worker: string | (() => string),
  signs?: { read(): { readonly cells: number } | null },
): RedriveDriver {
  return openRedriveDriver({
    store,
    system,
    log,
    limits,
    worker: typeof worker === "string" ? () => worker : worker,
    explain: (job) => explainJob(store, job, limits),
    ...(signs && { sign: () => signs.read() }),
  });
}

/** Steps of a recall, each of up to 200 jobs, that the process of the operator does at once. */
const RECALL_STEPS = 10_000;

/** Takes back what no worker has taken, unless another process is at it: where no worker lives, no other would. */
async function takeBack({ store }: RedriveDependencies, driver: RedriveDriver, id: string): Promise<void> {
  try {
    for (let step = 0; step < RECALL_STEPS; step++) {
      const before = await runOf(store, id);
      if (!before.recall) return;
      await driver.stepAll();
      const after = await runOf(store, id);
      if (after.recall && after.cursor === before.cursor) return;
    }
  } finally {
    await driver.release().catch(() => undefined);
  }
}

async function follow(
  { system }: RedriveDependencies,
  driver: RedriveDriver,
  look: (isWhole: boolean) => Promise<RedriveRunView>,
  options: FollowOptions = {},
): Promise<RedriveRunView> {
  const {
    signal,
    onChange,
    drive = true,
  } = parseOptions(options, ["signal", "onChange", "drive"], "follow") as FollowOptions;
  let seen = "";
  try {
    for (;;) {
      if (signal?.aborted) throw new RedriveError("aborted", "The following was interrupted; the run goes on.");
      const waitMs = drive ? await driver.step(signal) : FOLLOW_MS;
      const view = await look(false);
      const { driver: _, ...shown } = view;
      const text = JSON.stringify(shown);
      if (text !== seen) onChange?.(view);
      seen = text;
      if (!isDriven(view)) return look(true);
      await system.sleep(Math.min(FOLLOW_MS, waitMs), signal);
    }
  } finally {
    if (drive) await driver.release().catch(() => undefined);
  }
}
