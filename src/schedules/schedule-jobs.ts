// The jobs of schedules. Every process computes the same id and key for the job of a tick, so that any process that
// finds the tick decided can write its job, and no job is written twice.
import { createHash } from "node:crypto";
import type { NewJob } from "../core/new-job.ts";
import type { PolicyOptions } from "../core/policy.ts";
import type { Schedule } from "../core/schedule.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { type EnqueueOptions, type KnownType, knownType, newJobOf } from "../enqueue/new-jobs.ts";

/** The kind of the cells that hold schedules; the one without a name is written with every change of a schedule. */
export const SCHEDULE_CELLS = "schedule";

/** The id of a tick's job: of the same form as other ids, with the time of the tick. */
export function tickId(name: string, tick: number): string {
  const hash = createHash("sha256").update(`${name} ${tick}`).digest("hex");
  const time = tick.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hash.slice(0, 3)}-8${hash.slice(3, 6)}-${hash.slice(6, 18)}`;
}

/** A job of a schedule: for a tick, or an extra one that was asked for. */
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
  // One after the other, whatever `groupConcurrency` the type has.
  return overlap === "queue" ? { ...job, groupConcurrency: 1 } : job;
}

/** Finds the facts about types, given their definitions or their names. */
export type KnownTypes = (job: JobDefinition | string) => KnownType;

/** The types that this program knows. */
export function typesByName(jobs: readonly JobDefinition[], defaults: PolicyOptions): KnownTypes {
  const byName = new Map(jobs.map((definition) => [definition.type, knownType(definition, defaults)]));
  return (job) => byName.get(typeof job === "string" ? job : job.type) ?? knownType(job, defaults);
}
