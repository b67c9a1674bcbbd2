// What to do about the dead letters of a cause, from what the store knows. `redrive` is for letters that will very likely
// complete, `canary` for those that may, `repair` for payloads that are themselves refused. `wait` is for what passes by
// itself or is under way: an outage, a deployment, letters that were sent back. `unknown` is left to a person: a bug without
// a fix does not pass, and its letters would die again. The first row that fits decides:
//
//   no letter, ended by operators, out of time        unknown
//   a breaker of its services is open                 wait; unknown for a bug, repair for a payload
//   fixed in a release that does not run              wait
//   fixed, and a release with the fix fails           unknown
//   letters were sent back, and did not run           wait
//     some failed again                               unknown; canary where few did, or others complete since
//     all completed                                   canary; redrive after an outage
//   payloads are refused, others were taken           repair
//     all, and since the first runs of a release      unknown
//     another release runs now and takes them         canary
//   outside: network, limit, machine, credential
//     its jobs fail by another error now              unknown; wait for another outage
//     many runs completed since                       redrive, if nothing below holds; else canary
//     it fails now                                    wait; unknown where a person must act
//     few runs or calls went well since               canary
//   code: the failing release does not run any more   canary
//     a newer one came, the failing one still runs    wait
//     everything failed, everything completes         canary
//     else                                            unknown
//
// `redrive` is never said where letters may meet the same failure again: the cause came back before, a release brought it,
// a credential is missing, other runs completed while it went on, or a type, service or tenant of its letters has
// completed too little since.
import { formatDuration } from "../duration.ts";
import {
  broughtBy,
  failedShare,
  hadOutage,
  isCode,
  isOfSome,
  isOutside,
  isPartial,
  isProvable,
  isTotal,
  replacedBy,
  type TriageFacts,
} from "./triage-facts.ts";

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
/** A release this young may have brought what shows late: a leak of memory, files or connections. */
const YOUNG_MS = 24 * 60 * 60_000;
/** So many runs that went well are evidence; fewer are only a sign. */
const SENT_BACK = 5;
const ALIKE = 5;
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

/** Bugs and refused payloads do not wait for a service, even where they have opened its breaker. */
function heldByBreaker(facts: TriageFacts): Triage | null {
  const { service } = facts;
  if (service === null || service.breaker === "closed" || isCode(facts) || facts.payloadBound) return null;
  const word = service.breaker === "open" ? "open" : "half-open";
  return advise("wait", `the breaker of ${service.name} is ${word}`);
}

function notDeployed({ state, fixedIn, releases: { seen, running } }: TriageFacts): Triage | null {
  if (state !== "fixed" || fixedIn === null) return null;
  const from = seen.indexOf(fixedIn);
  if (from < 0) return advise("wait", `it is fixed in ${fixedIn}, which no worker has run yet`);
  const hasFix = running.length === 0 || running.some((release) => seen.indexOf(release) >= from);
  return hasFix ? null : advise("wait", `it is fixed in ${fixedIn}, which no worker runs now`);
}

/** The fixing release, or one seen later, fails by it; or the cause came back. */
function brokenFix(facts: TriageFacts): Triage | null {
  const { state, fixedIn, payloadBound, releases } = facts;
  // A network fails now and then; a machine that lacks something again was not repaired.
  const mayRecur = isOutside(facts) && (facts.class !== "system" || hadOutage(facts));
  if (state === "regressed" && !payloadBound && !mayRecur)
    return advise("unknown", `it was fixed${fixedIn === null ? "" : ` in ${fixedIn}`} and came back`);
  if (state !== "fixed" || fixedIn === null) return null;
  const from = releases.seen.indexOf(fixedIn);
  const failing = releases.failing.find((release) => releases.seen.indexOf(release) >= from);
  return failing === undefined ? null : advise("unknown", `it is fixed in ${fixedIn}, but ${failing} fails by it`);
}

function sentBack(facts: TriageFacts): Triage | null {
  const { completed, failing, dead, none } = facts.redriven;
  const [bad, ended] = [failing + dead, completed + failing + dead];
  if (none > 0 && bad === 0)
    return advise("wait", `${counted(none, "letter was", "letters were")} sent back and did not run yet`);
  if (ended === 0) return null;
  const said = `of ${counted(ended, "letter", "letters")} sent back ${completed} completed`;
  const again = `${said} and ${bad} failed again`;
  if (facts.payloadBound && facts.state !== "fixed") return bad / ended >= MANY ? advise("repair", again) : null;
  // The bug is still there for some; an outage ends for all, and these may have met its last minute.
  const isOver = isOutside(facts) && completesSince(facts);
  if (bad / ended > (isOutside(facts) ? MANY : FEW) && !isOver) return advise("unknown", again);
  if (bad > 0) return advise("canary", again);
  // A bug hits some payloads, and those sent back may be others, repaired, or run by another release.
  if (!isOutside(facts)) return advise("canary", said);
  // Few of them say less about an outage than the runs of others.
  return completed >= SENT_BACK ? redrive(facts, said) : null;
}

/** Payloads that are refused. If all are, since a release came, its schema is the suspect. */
function payload(facts: TriageFacts): Triage | null {
  const { payloadBound, state, fixedIn, during } = facts;
  if (!payloadBound) return null;
  if (state === "fixed")
    return advise("canary", `the payloads were refused until ${fixedIn ?? "it was marked fixed"}; not tried since`);
  const [bringer, next] = [broughtBy(facts), replacedBy(facts)];
  const isTaken = isTotal(facts) || (completesSince(facts) && facts.alike.tenants === 1);
  if (next !== null && isTaken) return advise("canary", `${next} runs now, and has refused no payload by it`);
  if (isTotal(facts) && bringer !== null)
    return advise("unknown", `${bringer} has refused every payload from its first runs on`);
  const others = isPartial(facts) ? `, ${during?.completed} other runs completed meanwhile` : "";
  return advise("repair", `the payloads are refused as they are${others}`);
}

/** Services, networks, machines and credentials: what other runs do now tells what these would do. */
function outside(facts: TriageFacts): Triage | null {
  if (!isOutside(facts)) return null;
  const { service, lastAt, since, alike, state } = facts;
  const isCredential = facts.class === "authentication";
  const ran = `${since.completed} of ${counted(since.completed + since.failed, "run", "runs")} of its types completed since`;
  const recent = stillFailing(facts);
  if (failedShare(since) >= HALF) return recent ?? failsOtherwise(facts, ran);
  const isOfOthers = alike.looked > 0 && alike.tenants === 0;
  if (isCredential && since.completed > 0 && (isOfOthers || isPartial(facts)))
    return advise("unknown", "the runs that complete may have other credentials; see whose is refused");
  if (service !== null && service.closedAt !== null && service.closedAt > lastAt) {
    const { name, successes } = service;
    const said = `the breaker of ${name} closed; ${counted(successes, "call", "calls")} succeeded since`;
    // Calls are counted for a minute or so; runs of its types tell the same for longer.
    const isProven = successes >= CALLS || since.completed >= RUNS;
    return isProven && failedShare(since) <= FEW ? redrive(facts, said) : advise("canary", said);
  }
  if (since.completed > 0 && isOfOthers && recent === null)
    return advise("unknown", "only jobs of other tenants have completed since");
  if (completesSince(facts) && !isOfOthers) return recent === null ? redrive(facts, ran) : advise("canary", ran);
  if (recent !== null) return recent;
  if (since.completed > 0) return advise("canary", ran);
  if (!isCredential && service !== null && service.successes > 0)
    return advise("canary", `${service.name} answers: ${counted(service.successes, "call", "calls")} succeeded`);
  return state === "fixed" ? advise("canary", "it was marked fixed; nothing ran since") : null;
}

/** The jobs meet another error now: whether this one is over shows when that one is. */
function failsOtherwise({ class: found, since }: TriageFacts, ran: string): Triage {
  const isOutage = since.class === null || ["network", "rate_limited", "timeout"].includes(since.class);
  return isOutage && found !== "authentication"
    ? advise("wait", ran)
    : advise("unknown", `${ran}; the others fail by another error`);
}

/** `redrive`, or `canary` where its letters may meet the same failure again. */
function redrive(facts: TriageFacts, reason: string): Triage {
  const doubt = doubtOf(facts);
  return doubt === null ? advise("redrive", reason) : advise("canary", `${reason}; but ${doubt}`);
}

function doubtOf(facts: TriageFacts): string | null {
  const { alike, releases, state } = facts;
  const { suspect, failing, seen } = releases;
  const bringer = broughtBy(facts);
  if (state === "regressed") return "it came back before";
  if (facts.class === "authentication") return "a credential may belong to one tenant";
  if (bringer !== null) return `it began with ${bringer}`;
  if (facts.class === "system" && suspect !== null && suspect.ageMs < YOUNG_MS && failing.includes(seen.at(-1) ?? ""))
    return `${suspect.name} was new then`;
  if (!isProvable(facts)) return "other payloads say little of its own";
  if (alike.tenants < 1) return "not all of its tenants had a run";
  return alike.least < ALIKE ? "not all of its types and services had runs" : null;
}

/** Code that an operator marked as fixed, and whose fix runs. */
function fixedCode(facts: TriageFacts): Triage | null {
  const { state, fixedIn, since } = facts;
  if (state !== "fixed") return null;
  const recent = stillFailing(facts);
  if (recent !== null && since.completed < RUNS && replacedBy(facts) === null) return recent;
  if (fixedIn === null) return advise("canary", "it was marked fixed; no letter was tried since");
  const ran = `it is fixed in ${fixedIn}; ${since.completed} runs of its types completed since`;
  return failedShare(since) >= HALF ? advise("unknown", `${ran}, ${since.failed} failed`) : advise("canary", ran);
}

/** Code, or an error without a known class, about which people have said nothing. */
function openCode(facts: TriageFacts): Triage | null {
  const { releases, since } = facts;
  const next = replacedBy(facts);
  if (next !== null) return advise("canary", `${next} runs now, and has not failed by it; no letter was tried since`);
  const newest = releases.seen.at(-1);
  const isNewer = newest !== undefined && releases.failing.length > 0 && !releases.failing.includes(newest);
  if (isNewer && stillFailing(facts) !== null && since.completed < RUNS)
    return advise("wait", `${newest} is there, but ${releases.failing[0]} still fails by it`);
  const isGone = releases.running.length === 0 || releases.running.includes(newest ?? "");
  if (isNewer && isGone)
    return advise("canary", `${newest} came after the last release that fails by it; no letter was tried since`);
  const isOver = completesSince(facts) && stillFailing(facts) === null;
  if (isOver && isTotal(facts))
    return advise("canary", `every run of its types failed, and ${since.completed} completed since`);
  if (isOver && !isCode(facts) && !isPartial(facts))
    return advise("canary", `${since.completed} runs of its types completed since; whether its own would is not known`);
  if (isOutside(facts)) return null;
  const worst = releases.running.find((release) => releases.failing.includes(release)) ?? releases.failing[0];
  if (worst !== undefined && (worst === newest || releases.running.includes(worst)))
    return advise(
      "unknown",
      `${worst === newest ? `the newest release, ${worst},` : worst} fails by it; it needs a fix`,
    );
  return advise("unknown", "nothing tells whether it was fixed");
}

/** Many runs of its types completed since it was last seen, and hardly one failed. */
function completesSince({ since }: TriageFacts): boolean {
  return since.completed >= RUNS && failedShare(since) <= FEW;
}

/** It failed minutes ago. An outage passes; a full disk, a refused credential or a release with a wrong host do not. */
function stillFailing(facts: TriageFacts): Triage | null {
  const { lastAt, now, since } = facts;
  if (now - lastAt >= RECENT_MS) return null;
  const said = `it still fails: last ${formatDuration(now - lastAt)} ago`;
  const bringer = broughtBy(facts);
  const isNetwork = facts.class === "network" && !hadOutage(facts);
  if (isNetwork && bringer !== null && isTotal(facts) && since.completed === 0)
    return advise("unknown", `${said}; no run of its types has completed in ${bringer}`);
  if (isOfSome(facts)) return advise("unknown", `${said}, while other runs of its types complete`);
  const needsPerson = facts.class === "authentication" || facts.class === "system";
  return advise(needsPerson ? "unknown" : "wait", needsPerson ? `${said}; it does not pass by itself` : said);
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
