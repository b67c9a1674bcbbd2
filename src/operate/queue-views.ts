// The queues of a fleet as shown to people. A queue is a label: it is known from the job types that workers serve, from
// due work in it, and from a pause. Here is also how people pause.
import { type Duration, parseDuration } from "../core/duration.ts";
import { subjectOf } from "../core/event-log.ts";
import { pausesInForce } from "../core/holding.ts";
import { loadFrom } from "../core/load.ts";
import { JOB_BOUNDS } from "../core/new-job.ts";
import { objectOf, parseOptions } from "../core/options.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { ActionOptions, EventLog } from "../report/event-log.ts";
import type { Pause, PauseTarget, Store } from "../store/store.ts";
import { VERBS } from "../store/verb-facts.ts";

/** One queue. */
export interface QueueView {
  /** Its name. */
  readonly name: string;
  /** Its pause, with when it ends (`until`; null if only by hand); null if it is not paused. */
  readonly paused: { readonly until: number | null; readonly reason: string } | null;
  /** The job types seen in it. */
  readonly types: readonly string[];
}

/** Every pause in force, by kind and name. */
export async function readPauses(store: Pick<Store, "control">): Promise<Pause[]> {
  const order = (a: Pause, b: Pause): boolean => (a.kind === b.kind ? a.name < b.name : a.kind < b.kind);
  return pausesInForce(await store.control()).toSorted((a, b) => (order(a, b) ? -1 : 1));
}

/** Lanes read with one call, and calls for one look. */
const LANES = 1_000;
const PAGES = 20;

/** Every known queue, by name. */
export async function readQueues(store: Store, jobs: readonly JobDefinition[]): Promise<QueueView[]> {
  const [control, { cells }] = await Promise.all([store.control(), store.cells([{ kind: "load" }])]);
  const types = new Map<string, Set<string>>();
  const add = (queue: string, type: string | null): void => {
    const own = types.get(queue) ?? new Set();
    types.set(queue, type === null ? own : own.add(type));
  };
  for (const { queue, type } of jobs) add(queue, type);
  for (const { value } of cells) for (const { queue, type } of loadFrom(value)?.types ?? []) add(queue, type);
  for (let after: number | null = null, page = 0; page < PAGES; page++) {
    const { lanes, next } = await store.lanes(after, LANES);
    for (const { queue, type } of lanes) add(queue, type);
    if (next === null) break;
    after = next;
  }
  const pauses = pausesInForce(control).filter(({ kind }) => kind === "queue");
  for (const { name } of pauses) add(name, null);
  return [...types]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, own]) => {
      const pause = pauses.find((each) => each.name === name);
      const paused = pause ? { until: pause.until, reason: pause.reason } : null;
      return { name, paused, types: [...own].toSorted() };
    });
}

/** Pauses and resumes for the whole fleet. */
export interface Pausing {
  /** Pauses for a time, or until `resume`. */
  pause(
    target: PauseTarget,
    options?: { readonly for?: Duration; readonly reason?: string } & ActionOptions,
  ): Promise<void>;
  /** Ends a pause; false if none was in force. */
  resume(target: PauseTarget, options?: ActionOptions): Promise<boolean>;
}

/** The methods that pause and resume; each is an action in the event log. */
export function pausing({ store, eventLog }: { readonly store: Store; readonly eventLog: EventLog }): Pausing {
  return {
    pause: async (target, options = {}) => {
      const { for: span, reason = "", why } = parseOptions(options, ["for", "reason", "why"], "pause");
      const { kind, name } = objectOf(target, "target");
      const forMs = span === undefined ? null : parseDuration(span, "for", { minMs: 1, maxMs: JOB_BOUNDS.delayMs });
      const pause = { forMs, reason: reason as string };
      VERBS.pause.check?.({ kind, name }, pause);
      const said = why ?? (pause.reason === "" ? undefined : pause.reason);
      const action = { kind: "pause", subject: subjectOf(kind, name), why: said, details: pause };
      await eventLog.act(action, () => store.pause({ kind, name }, pause));
    },
    resume: async (target, options = {}) => {
      const { why } = parseOptions(options, ["why"], "resume");
      const { kind, name } = objectOf(target, "target");
      VERBS.resume.check?.({ kind, name });
      const outcome = (resumed: boolean | undefined): object => ({ resumed });
      const action = { kind: "resume", subject: subjectOf(kind, name), why, outcome };
      return eventLog.act(action, () => store.resume({ kind, name }));
    },
  };
}
