// Checks the selection and the options of a redrive as callers give them.
import { type Duration, parseDuration } from "../core/duration.ts";
import { FAILURE_CLASSES } from "../core/job.ts";
import { checkOneOf } from "../core/new-job.ts";
import { invalid, namesOf, parseNumber, parseOptions } from "../core/options.ts";
import { RATE_BOUNDS } from "../core/recovery/allowance.ts";
import { DEFAULT_STEPS } from "../core/recovery/canary.ts";
import { TOLERATE_BOUNDS } from "../core/recovery/judge.ts";
import {
  type AskedSelection,
  IDS_MOST,
  LETTER_FIELDS,
  type Moment,
  type Selection,
} from "../core/recovery/selection.ts";
import { instantOf } from "../enqueue/new-jobs.ts";
import type { ActionOptions } from "../report/event-log.ts";
import { checkFilter } from "../store/verb-checks.ts";
import { checkId, checkKinds } from "./filter.ts";

/** Which dead letters to send back to work; every field narrows, and at least one is needed. */
export type RedriveSelection = Omit<Selection, "from" | "until"> & {
  /** Died at this time or later: a date, epoch milliseconds, an ISO 8601 text, or how long ago, such as `"2h"`. */
  readonly from?: Date | number | string;
  /** Died before this time. */
  readonly until?: Date | number | string;
};

/** Options of a plan. */
export interface RedrivePlanOptions {
  /** True sends letters whose key a newer job has, too; default false. */
  readonly superseded?: boolean;
  /** A JSON merge patch (RFC 7396) as text, which every payload gets before it is sent; default none. */
  readonly patch?: string;
  /** True leaves out letters whose patched payload does not fit their type; default false: the plan is refused. */
  readonly skipMisfits?: boolean;
}

/** Options of a start. */
export interface RedriveStartOptions extends ActionOptions {
  /** The sizes of the steps before the rest, none smaller than the one before, or `"none"`; default `[5, 50]`. */
  readonly canary?: readonly number[] | "none";
  /** Letters a second, at most: 0.01 to 10,000; default the safe rate of the plan. */
  readonly rate?: number;
  /**
   * How long a step may take without a verdict before the run is paused, without the time in which its jobs are held
   * back; default ten times the longest timeout of its types, from 1 min to 1 h.
   */
  readonly judgeWithin?: Duration;
  /** The share that may fail the same way, 0 to 0.9; default 0: the first such failure of a canary stops the run. */
  readonly tolerate?: number;
  /** True starts it beside a run that may send the same letters; default false. */
  readonly alongside?: boolean;
}

const SELECTION = namesOf<RedriveSelection>()([...LETTER_FIELDS, "ids", "limit"]);
const PLAN = namesOf<RedrivePlanOptions>()(["superseded", "patch", "skipMisfits"]);
const START = namesOf<RedriveStartOptions>()(["canary", "rate", "judgeWithin", "tolerate", "alongside", "why"]);

const LIMIT_MOST = 1_000_000_000;
const STEPS_MOST = 10;
const STEP_MOST = 100_000;
const JUDGE_BOUNDS = { minMs: 1_000, maxMs: 7 * 86_400_000 } as const;

/** The selection, checked. */
export function selectionFrom(given: RedriveSelection): AskedSelection {
  const { ids, from, until, limit, ...rest } = parseOptions(given, SELECTION, "selection");
  const isNarrow = [ids, from, until, ...Object.values(rest)].some((value) => value !== undefined);
  if (!isNarrow) throw invalid("selection", "at least one field besides limit", "{}", "name a cause, a type or ids");
  checkKinds(rest, { text: ["fingerprint", "type", "tenant", "service", "key", "text"], yesOrNo: [] });
  if (rest.class !== undefined) checkOneOf("selection.class", rest.class as string, FAILURE_CLASSES);
  if (limit !== undefined) parseNumber(limit, "selection.limit", { min: 1, max: LIMIT_MOST, integer: true });
  const asked = {
    ...(rest as AskedSelection),
    ...(ids !== undefined && { ids: idsFrom(ids) }),
    ...(from !== undefined && { from: momentOf(from, "selection.from") }),
    ...(until !== undefined && { until: momentOf(until, "selection.until") }),
    ...(limit !== undefined && { limit: limit as number }),
  };
  const { ids: _, limit: __, from: ___, until: ____, ...filter } = asked;
  checkFilter(filter);
  return asked;
}

function idsFrom(ids: unknown): string[] {
  if (!Array.isArray(ids) || ids.length === 0 || ids.length > IDS_MOST) {
    const came = Array.isArray(ids) ? `${ids.length} ids` : ids;
    throw invalid("selection.ids", `1 to ${IDS_MOST} ids`, came, "select more letters by cause, type or time");
  }
  return [...new Set(ids.map(checkId))];
}

/** An instant, or how long ago. */
function momentOf(value: unknown, name: string): Moment {
  if (typeof value === "string" && /^\d+(\.\d+)?(ms|s|m|h|d)/.test(value)) return { agoMs: parseDuration(value, name) };
  return instantOf(value, name);
}

/** The options of a plan, checked. */
export function planOptionsFrom(given: RedrivePlanOptions): {
  readonly superseded: boolean;
  readonly patch: string | null;
  readonly skipMisfits: boolean;
} {
  const options = parseOptions(given, PLAN, "plan");
  const { superseded = false, patch = null, skipMisfits = false } = options;
  for (const [name, value] of Object.entries({ superseded, skipMisfits }))
    if (typeof value !== "boolean") throw invalid(`plan.${name}`, "true or false", value, "use one of these");
  if (patch !== null && typeof patch !== "string")
    throw invalid("plan.patch", "a JSON merge patch as text", patch, 'for example \'{"currency":"EUR"}\'');
  return { superseded: superseded as boolean, patch, skipMisfits: skipMisfits as boolean };
}

/** The options of a start, checked; null where the plan or the types decide. */
export function startOptionsFrom(given: RedriveStartOptions): {
  readonly steps: readonly number[];
  readonly rate: number | null;
  readonly judgeWithinMs: number | null;
  readonly tolerate: number;
  readonly alongside: boolean;
  readonly why: unknown;
} {
  const { canary, rate, judgeWithin, tolerate = 0, alongside = false, why } = parseOptions(given, START, "start");
  if (typeof alongside !== "boolean") throw invalid("start.alongside", "true or false", alongside, "use one of these");
  return {
    steps: stepsFrom(canary),
    rate: rate === undefined ? null : parseNumber(rate, "start.rate", RATE_BOUNDS),
    judgeWithinMs: judgeWithin === undefined ? null : parseDuration(judgeWithin, "start.judgeWithin", JUDGE_BOUNDS),
    tolerate: parseNumber(tolerate, "start.tolerate", TOLERATE_BOUNDS),
    alongside,
    why,
  };
}

function stepsFrom(canary: unknown): readonly number[] {
  if (canary === undefined) return DEFAULT_STEPS;
  if (canary === "none") return [];
  const expected = `1 to ${STEPS_MOST} whole numbers from 1 to ${STEP_MOST}, none smaller than the one before, or "none"`;
  const isStep = (size: unknown): boolean =>
    Number.isSafeInteger(size) && (size as number) >= 1 && (size as number) <= STEP_MOST;
  const isRight =
    Array.isArray(canary) &&
    canary.length >= 1 &&
    canary.length <= STEPS_MOST &&
    canary.every(isStep) &&
    canary.every((size, at) => at === 0 || size >= canary[at - 1]);
  if (isRight) return canary as number[];
  throw invalid("start.canary", expected, Array.isArray(canary) ? canary.join(",") : canary, "for example [5, 50]");
}
