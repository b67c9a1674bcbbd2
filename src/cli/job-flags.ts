// The flags that choose jobs and dead letters: ids, or filters, or everything on request.
import type { Command } from "commander";
import { parseDuration } from "../core/duration.ts";
import { DEATH_REASONS, FAILURE_CLASSES, STATES } from "../core/job.ts";
import { invalid } from "../core/options.ts";
import type { DeadLetterFilter } from "../operate/dead-letters.ts";
import type { JobFilter } from "../operate/jobs.ts";
import type { Store } from "../store/store.ts";
import { defined, type Flags, numeric, textual } from "./command.ts";

/** States that are derived when read, as filters on what is stored. */
const DERIVED = {
  scheduled: { state: "queued", due: false, tried: false },
  retrying: { state: "queued", due: false, tried: true },
} as const;

/** States that no filter on stored fields can tell: each job is read and checked. */
const HELD = {
  paused: { state: "queued", due: true },
  parked: { state: "queued", due: true },
} as const;

/** A state that needs a check of each job; null for any other. */
export function heldState(flags: Flags): keyof typeof HELD | null {
  return flags.state === "paused" || flags.state === "parked" ? flags.state : null;
}

/** Adds the filters of jobs; `held` also allows the states that need a check of each job. */
export function jobFilterFlags(command: Command, { held = false } = {}): Command {
  return command
    .option("--state <state>", statesFor(held).join(", "))
    .option("--type <type>", "jobs of this type")
    .option("--queue <name>", "jobs of this queue")
    .option("--service <name>", "jobs that depend on this service")
    .option("--tenant <name>", "jobs of this tenant")
    .option("--key <text>", "jobs with this key");
}

function statesFor(held: boolean): string[] {
  return [...STATES, ...Object.keys(DERIVED), ...(held ? Object.keys(HELD) : [])];
}

/** The filter that the flags describe. */
export function jobFilter(flags: Flags, { held = false } = {}): JobFilter {
  const state = textual(flags.state);
  if (state !== undefined && !statesFor(held).includes(state)) {
    const remedy = state in HELD ? "name the --service, --queue, --type or --tenant" : "use one of these";
    throw invalid("state", statesFor(held).join(", "), state, remedy);
  }
  const derived = { ...DERIVED, ...HELD }[state as keyof typeof DERIVED | keyof typeof HELD];
  return defined({
    ...(derived ?? { state: state as (typeof STATES)[number] | undefined }),
    type: textual(flags.type),
    queue: textual(flags.queue),
    service: textual(flags.service),
    tenant: textual(flags.tenant),
    key: textual(flags.key),
  }) as JobFilter;
}

/** Adds the filters of dead letters. */
export function letterFilterFlags(command: Command): Command {
  return command
    .option("--type <type>", "of this job type")
    .option("--class <class>", FAILURE_CLASSES.join(", "))
    .option("--reason <reason>", DEATH_REASONS.join(", "))
    .option("--service <name>", "that depend on this service")
    .option("--tenant <name>", "of this tenant")
    .option("--key <text>", "of jobs with this key")
    .option("--from <time>", "died at this time or later, e.g. 2027-01-31T08:00:00Z")
    .option("--until <time>", "died before this time")
    .option("--older-than <duration>", "died longer ago than this, e.g. 30d")
    .option("--text <part>", "part of the error's name or message")
    .option("--fingerprint <id>", "of this cause");
}

/** The filter that the flags describe; ages follow the store's clock. */
export async function letterFilter(flags: Flags, store: () => Promise<Store>): Promise<DeadLetterFilter> {
  const olderThan = textual(flags.olderThan);
  const filter = defined({
    type: textual(flags.type),
    class: textual(flags.class),
    reason: textual(flags.reason),
    service: textual(flags.service),
    tenant: textual(flags.tenant),
    key: textual(flags.key),
    from: numeric(flags.from),
    until: numeric(flags.until),
    text: textual(flags.text),
    fingerprint: textual(flags.fingerprint),
  }) as DeadLetterFilter;
  if (olderThan === undefined) return filter;
  if (filter.until !== undefined) throw invalid("older-than", "no --until beside it", olderThan, "give one of the two");
  const ms = parseDuration(olderThan, "older-than");
  const { now } = await (await store()).control();
  return { ...filter, until: Math.max(0, now - ms) };
}

/** Ids, or a filter, or all: exactly one of them, so that no command changes jobs by mistake. */
export function oneTarget<F extends object>(
  ids: readonly string[],
  filter: F,
  all: boolean,
): readonly string[] | (F & { all?: true }) {
  const ways = [ids.length > 0, Object.keys(filter).length > 0, all].filter(Boolean).length;
  if (ways === 0) throw invalid("target", "ids, filters or --all", "none of them", "pass one of them");
  if (ways > 1) throw invalid("target", "ids, filters or --all", "more than one of them", "give one");
  if (ids.length > 0) return [...new Set(ids)];
  return all ? ({ all: true } as F & { all: true }) : filter;
}
