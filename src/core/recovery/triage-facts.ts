// What triage knows of a cause, and what kind of failure these facts tell of. Rules are in triage.ts.
import { classOfSqlState } from "../classes/sqlstate.ts";
import type { DeathReason, FailureClass } from "../job.ts";
import type { CauseState } from "./cause-state.ts";

/** Runs of job types in a span of time. */
export interface RunCounts {
  /** Runs that succeeded. */
  readonly completed: number;
  /** Runs that failed, whatever followed. */
  readonly failed: number;
}

/** What is known of a cause. Times are those of the store. */
export interface TriageFacts {
  readonly class: FailureClass;
  /** The name of its error. */
  readonly name: string;
  /** The code of its error; null without one. */
  readonly code: string | null;
  /** The most frequent one. */
  readonly reason: DeathReason;
  readonly live: number;
  readonly deaths: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** When its last failures began: those with no long pause between them. */
  readonly boutAt: number;
  readonly now: number;
  readonly state: CauseState;
  readonly fixedIn: string | null;
  readonly releases: {
    /** Those whose runs failed by it, the newest first seen first. */
    readonly failing: readonly string[];
    /** All, in the order in which the store saw them first. */
    readonly seen: readonly string[];
    /** Those of the workers that live; empty where none lives, or one has no release. */
    readonly running: readonly string[];
    /**
     * The release that brought it: the one that failed in its last failures and was first seen before them; null where
     * several failed, or the store had seen no release before that one.
     */
    readonly suspect: {
      readonly name: string;
      /** How long the release was there before. */
      readonly ageMs: number;
      /** Runs of the types that had completed meanwhile. */
      readonly completed: number;
    } | null;
  };
  /** The service of its letters, of several the one that is least well; null without one. */
  readonly service: {
    readonly name: string;
    readonly breaker: "closed" | "open" | "half_open";
    /** When it closed; null if it was never open. */
    readonly closedAt: number | null;
    readonly successes: number;
  } | null;
  /** Runs of its types during its last failures; null where the store has not counted them finely enough. */
  readonly during: RunCounts | null;
  /** Runs of its types since it was last seen, and the class of most failures among them. */
  readonly since: RunCounts & { readonly class: FailureClass | null };
  /** Those of the completed ones whose jobs the store still has and which are like its letters. */
  readonly alike: {
    /** How many were looked at, like its letters or not. */
    readonly looked: number;
    /** The fewest of any type and service of its letters. */
    readonly least: number;
    /** The share of its letters whose tenant had one. */
    readonly tenants: number;
  };
  /** What became of its letters that were sent back since its last new death and since the newest release. */
  readonly redriven: {
    readonly completed: number;
    readonly failing: number;
    readonly dead: number;
    /** Those that have not run yet. */
    readonly none: number;
  };
  /** The payload itself is refused. */
  readonly payloadBound: boolean;
}

/** The share of failed runs from which all count as failed: some that began before it completed meanwhile. */
const NEARLY_ALL = 0.9;
/** A release that had completed so many runs of the types has not brought the cause. */
const RUNS_BEFORE = 5;
/** Errors of the language itself: bugs, wherever the data came from. `SyntaxError` is mostly an answer that is no JSON. */
const LANGUAGE_ERRORS = new Set(["TypeError", "ReferenceError", "RangeError", "AssertionError"]);
/** Answers of a gateway, a service or a database that is away; a 500 may be about one payload. */
const AWAY = /^(?:50[234]|57P0[123]|53300|25006)$/;

/** The share of runs that failed; 0 where none ran. */
export function failedShare({ completed, failed }: RunCounts): number {
  return failed / Math.max(1, completed + failed);
}

/** Its jobs failed and all others of the types as well: what ended it would let its jobs complete, too. */
export function isTotal({ during }: TriageFacts): boolean {
  return during !== null && failedShare(during) >= NEARLY_ALL;
}

/** Other runs of its types completed while it went on: what they do says little of its own. */
export function isPartial({ during }: TriageFacts): boolean {
  return during !== null && failedShare(during) < NEARLY_ALL;
}

/** The breaker of its service was open in its last failures: then it was an outage of the service. */
export function hadOutage({ service, boutAt }: TriageFacts): boolean {
  return service !== null && service.closedAt !== null && service.closedAt >= boutAt;
}

/** What lies outside the code: networks, limits, credentials, machines, and services during an outage. */
export function isOutside(facts: TriageFacts): boolean {
  const { class: found, reason, code, service } = facts;
  if (reason === "breaker" || ["network", "rate_limited", "authentication", "system"].includes(found)) return true;
  if (found === "transient") return isServerError(code ?? "") || (hadOutage(facts) && !isCode(facts));
  // A handler that is too slow for its timeout looks the same: only one with a service may wait for another.
  return found === "timeout" && service !== null;
}

/** HTTP 5xx, or what a database calls passing. */
function isServerError(code: string): boolean {
  return /^5\d\d$/.test(code) || classOfSqlState(code) === "transient";
}

/** Other runs are proof that its jobs would complete, not only a sign. */
export function isProvable(facts: TriageFacts): boolean {
  const { class: found, code } = facts;
  if (isPartial(facts)) return false;
  if (found === "network" || found === "rate_limited" || hadOutage(facts)) return true;
  return isTotal(facts) && (found === "system" || AWAY.test(code ?? ""));
}

/** Some jobs fail by it and others of the types complete: it may be about what these jobs ask for. */
export function isOfSome(facts: TriageFacts): boolean {
  const { class: found, code } = facts;
  return isOutside(facts) && isPartial(facts) && ["timeout", "transient"].includes(found) && !AWAY.test(code ?? "");
}

/** A bug, as far as the error tells. */
export function isCode({ class: found, name }: TriageFacts): boolean {
  if (["permanent", "crashed", "stuck", "validation"].includes(found)) return true;
  return found === "transient" && LANGUAGE_ERRORS.has(name);
}

/** The release that failed from its first runs on: its code or its settings, also where the error speaks of a network. */
export function broughtBy({ releases: { suspect } }: TriageFacts): string | null {
  return suspect !== null && suspect.completed < RUNS_BEFORE ? suspect.name : null;
}

/** A release that runs now, while none that fails by it does: a newer one, or the one before it. */
export function replacedBy({ releases: { failing, running } }: TriageFacts): string | null {
  return failing.length > 0 && !running.some((release) => failing.includes(release)) ? (running[0] ?? null) : null;
}
