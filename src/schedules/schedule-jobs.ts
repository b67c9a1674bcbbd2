// The jobs that schedules make. The job of a tick has an id and a key that anybody can work out, so that whoever finds a
// tick decided can write its job, and nobody writes two.
import { createHash } from "node:crypto";
import type { NewJob } from "../core/new-job.ts";
import type { PolicyOptions } from "../core/policy.ts";
import type { Schedule } from "../core/schedule.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { type EnqueueOptions, type KnownType, knownType, newJobOf } from "../enqueue/new-jobs.ts";

/** The kind of the cells that schedules are kept in; the one without a name is written whenever somebody changes one. */
export const SCHEDULE_CELLS = "schedule";

/** The id of a tick's job: in the form of all others, with the time of the tick. */
export function tickId(name: string, tick: number): string {
  const hash = createHash("sha256").update(`${name} ${tick}`).digest("hex");
  const time = tick.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hash.slice(0, 3)}-8${hash.slice(3, 6)}-${hash.slice(6, 18)}`;
}

/** A job of a schedule: that of a tick, or one more that somebody asked for. */
export function scheduledJob(
  name: string,
  { definition }: Schedule,
  which: { readonly tick: number } | { readonly id: string },
  { known, random }: { readonly known: KnownTypes; readonly random: () => number },
): NewJob {
  const { job: type, payload, options, overlap, jitterMs } = definition;
  const isTick = "tick" in which;
  const given: EnqueueOptions = {
    ...(options as EnqueueOptions),
    ...(isTick && { key: `schedule:${name}:${new Date(which.tick).toISOString()}` }),
    ...(isTick && { delay: Math.floor(random() * (jitterMs + 1)) }),
    ...(overlap === "queue" && { group: `schedule:${name}` }),
  };
  const job = newJobOf(known(type), payload, isTick ? tickId(name, which.tick) : which.id, given);
  // One after the other, whatever the groups of the type may do otherwise.
  return overlap === "queue" ? { ...job, groupConcurrency: 1 } : job;
}

/** What is known about types, given by their definitions or their names. */
export type KnownTypes = (job: JobDefinition | string) => KnownType;

/** What this program knows about types. */
export function typesByName(jobs: readonly JobDefinition[], defaults: PolicyOptions): KnownTypes {
  const byName = new Map(jobs.map((definition) => [definition.type, knownType(definition, defaults)]));
  return (job) => byName.get(typeof job === "string" ? job : job.type) ?? knownType(job, defaults);
}
