// What to do about the dead letters of a cause, from what the store knows. `redrive` is for letters that will very likely
// complete, `canary` for those that may, `repair` for payloads that are themselves refused. `wait` is for what passes by
// itself or is under way: an outage, a deployment, letters that were sent back. `unknown` is left to a person: a bug without
// a fix does not pass, and its letters would die again.
//
// Evidence, the strongest first: letters of this cause that were sent back; the state that people gave it and the
// releases; the breaker of its service; other runs of its types since it was last seen. Other runs speak for services and
// networks, never for code: they have other payloads.
import { formatDuration } from "../duration.ts";
import type { DeathReason, FailureClass } from "../job.ts";
import type { CauseState } from "./cause-state.ts";

/** What is known of a cause. Times are those of the store. */
export interface TriageFacts {
  readonly class: FailureClass;
  /** The most frequent one. */
  readonly reason: DeathReason;
  readonly live: number;
  readonly deaths: number;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly now: number;
  readonly state: CauseState;
  readonly fixedIn: string | null;
  readonly releases: {
    /** Those whose runs failed by it, the newest first seen first. */
    readonly failing: readonly string[];
    /** All, in the order in which the store saw them first. */
    readonly seen: readonly string[];
  };
  /** The service of its jobs; null without one. */
  readonly service: {
    readonly name: string;
    readonly breaker: "closed" | "open" | "half_open";
    /** When it closed; null if it was never open. */
    readonly closedAt: number | null;
    readonly successes: number;
  } | null;
  /** Runs of its types since it was last seen. */
  readonly since: { readonly completed: number; readonly failed: number };
  /** What became of its letters that were sent back since its last new death. */
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

/** The advices, those that move the most letters first. */
export const ADVICES = ["redrive", "canary", "repair", "wait", "unknown"] as const;
/** One of them. */
export type Advice = (typeof ADVICES)[number];

/** An advice and what it rests on. */
export interface Triage {
  readonly advice: Advice;
  readonly reason: string;
}

/** A cause seen this recently may still go on. */
const RECENT_MS = 5 * 60_000;
/** So many runs that went well are evidence; fewer are only a sign. */
const SENT_BACK = 5;
const CALLS = 10;
const RUNS = 20;
/** The share of failed runs up to which others count as well, and from which they do not. */
const FEW = 0.05;
const MANY = 0.2;
const HALF = 0.5;

/** The advice for a cause. */
export function triage(facts: TriageFacts): Triage {
  for (const rule of RULES) {
    const found = rule(facts);
    if (found !== null) return found;
  }
  return advise("unknown", "nothing has shown yet whether its jobs would complete");
}

type TriageRule = (facts: TriageFacts) => Triage | null;

/** Each rule may decide; the first that does counts. */
const RULES: readonly TriageRule[] = [
  nothingToSend,
  heldByBreaker,
  notDeployed,
  brokenFix,
  sentBack,
  payload,
  outside,
  fixedCode,
  openCode,
];

function advise(advice: Advice, reason: string): Triage {
  return { advice, reason };
}

function nothingToSend({ live, reason }: TriageFacts): Triage | null {
  if (live === 0) return advise("unknown", "it has no dead letter that waits");
  if (reason === "manual") return advise("unknown", "operators ended these jobs; ask them before you send any back");
  return reason === "deadline"
    ? advise("unknown", "their time was over; find out whether they are still wanted")
    : null;
}

function heldByBreaker({ service }: TriageFacts): Triage | null {
  if (service === null || service.breaker === "closed") return null;
  const word = service.breaker === "open" ? "open" : "half-open";
  return advise("wait", `the breaker of ${service.name} is ${word}`);
}

function notDeployed({ state, fixedIn, releases: { seen } }: TriageFacts): Triage | null {
  if (state !== "fixed" || fixedIn === null || seen.includes(fixedIn)) return null;
  return advise("wait", `it is fixed in ${fixedIn}, which no worker has run yet`);
}

/** The fixing release, or one seen later, fails by it; or the cause came back. */
function brokenFix(facts: TriageFacts): Triage | null {
  const { state, fixedIn, payloadBound, releases } = facts;
  if (state === "regressed" && !payloadBound && !isOutside(facts))
    return advise("unknown", `it was fixed${fixedIn === null ? "" : ` in ${fixedIn}`} and came back`);
  if (state !== "fixed" || fixedIn === null) return null;
  const from = releases.seen.indexOf(fixedIn);
  const failing = releases.failing.find((release) => releases.seen.indexOf(release) >= from);
  return failing === undefined ? null : advise("unknown", `it is fixed in ${fixedIn}, but ${failing} fails by it`);
}

function sentBack(facts: TriageFacts): Triage | null {
  const { completed, failing, dead, none } = facts.redriven;
  const [bad, ended] = [failing + dead, completed + failing + dead];
  if (ended === 0)
    return none === 0
      ? null
      : advise("wait", `${counted(none, "letter was", "letters were")} sent back and did not run yet`);
  const said = `of ${counted(ended, "letter", "letters")} sent back ${completed} completed`;
  if (bad / ended >= MANY) return advise(facts.payloadBound ? "repair" : "unknown", `${said} and ${bad} failed again`);
  // The payloads that were sent back may have been repaired; the others are as they were.
  if (facts.payloadBound && facts.state !== "fixed") return null;
  if (bad > 0) return advise("canary", `${said} and ${bad} failed again`);
  if (facts.state === "regressed") return advise("canary", said);
  // A bug hits some payloads, and those sent back may be others, repaired, or run by another release.
  if (!isOutside(facts)) return advise("canary", said);
  // Few of them say less about an outage than the runs of others.
  return completed >= SENT_BACK ? advise("redrive", said) : null;
}

function payload({ payloadBound, state, fixedIn }: TriageFacts): Triage | null {
  if (!payloadBound) return null;
  if (state !== "fixed") return advise("repair", "the payloads are refused as they are");
  return advise("canary", `the payloads were refused until ${fixedIn ?? "it was marked fixed"}; not tried since`);
}

/** Services, networks and credentials: what other runs do now tells what these would do. */
function outside(facts: TriageFacts): Triage | null {
  if (!isOutside(facts)) return null;
  const { service, lastAt, since, state } = facts;
  // A credential may belong to one tenant: what others may do says little.
  const isCapped = state === "regressed" || facts.class === "authentication";
  const cap = (advice: Advice, reason: string): Triage =>
    advise(advice === "redrive" && isCapped ? "canary" : advice, reason);
  const ran = `${since.completed} of ${counted(since.completed + since.failed, "run", "runs")} of its types completed since`;
  if (failedShare(facts) >= HALF) return advise(facts.class === "authentication" ? "unknown" : "wait", ran);
  if (service !== null && service.closedAt !== null && service.closedAt > lastAt) {
    const { name, successes } = service;
    const said = `the breaker of ${name} closed after the last failure; ${counted(successes, "call", "calls")} succeeded since`;
    // Calls are counted for a minute or so; runs of its types tell the same for longer.
    const isProven = successes >= CALLS || since.completed >= RUNS;
    return cap(isProven && failedShare(facts) < MANY ? "redrive" : "canary", said);
  }
  const recent = stillFailing(facts);
  if (since.completed >= RUNS && failedShare(facts) <= FEW) return cap(recent === null ? "redrive" : "canary", ran);
  if (recent !== null) return recent;
  if (since.completed > 0) return advise("canary", ran);
  if (service !== null && service.successes > 0)
    return advise("canary", `${service.name} answers: ${counted(service.successes, "call", "calls")} succeeded`);
  return state === "fixed" ? advise("canary", "it was marked fixed; nothing ran since") : null;
}

/** Code that an operator marked as fixed, and whose fix runs. */
function fixedCode(facts: TriageFacts): Triage | null {
  const { state, fixedIn, since } = facts;
  if (state !== "fixed") return null;
  const recent = stillFailing(facts);
  if (recent !== null && since.completed < RUNS) return recent;
  if (fixedIn === null) return advise("canary", "it was marked fixed; no letter was tried since");
  const ran = `it is fixed in ${fixedIn}; ${since.completed} runs of its types completed since`;
  return failedShare(facts) >= HALF ? advise("unknown", `${ran}, ${since.failed} failed`) : advise("canary", ran);
}

/** Code, or an error without a known class, about which people have said nothing. */
function openCode(facts: TriageFacts): Triage | null {
  const { releases, since } = facts;
  const newest = releases.seen.at(-1);
  const isNewer = newest !== undefined && releases.failing.length > 0 && !releases.failing.includes(newest);
  if (isCode(facts) && newest !== undefined && releases.failing.includes(newest))
    return advise("unknown", `the newest release, ${newest}, fails by it; it needs a fix`);
  const recent = stillFailing(facts);
  if (recent !== null && since.completed < RUNS) return recent;
  if (isNewer)
    return advise("canary", `${newest} came after the last release that fails by it; no letter was tried since`);
  if (isCode(facts)) return advise("unknown", "nothing tells whether it was fixed");
  if (failedShare(facts) >= HALF) return advise("wait", `${since.failed} runs of its types failed since`);
  if (since.completed >= RUNS && failedShare(facts) <= FEW)
    return advise("canary", `${since.completed} runs of its types completed since; whether its own would is not known`);
  return null;
}

/** What lies outside the code: networks, limits, credentials, and the errors of a service during its outage. */
function isOutside({ class: found, service, reason, firstAt }: TriageFacts): boolean {
  if (["network", "rate_limited", "authentication"].includes(found) || reason === "breaker") return true;
  // Any error of a handler may have these classes: only a breaker that was open since tells of an outage.
  const isOutage = service !== null && service.closedAt !== null && service.closedAt >= firstAt;
  return ["transient", "system", "timeout"].includes(found) && isOutage;
}

function isCode({ class: found }: TriageFacts): boolean {
  return ["permanent", "crashed", "stuck", "validation"].includes(found);
}

function stillFailing({ lastAt, now }: TriageFacts): Triage | null {
  return now - lastAt < RECENT_MS ? advise("wait", `it still fails: last ${formatDuration(now - lastAt)} ago`) : null;
}

/** The share of the runs of its types that failed since; 0 where none ran. */
function failedShare({ since: { completed, failed } }: TriageFacts): number {
  return failed / Math.max(1, completed + failed);
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
