// A service that prices things and may be down, with the job that calls it, on virtual time.
import { expect } from "vitest";
import { fixed } from "../../src/core/backoff.ts";
import type { Job } from "../../src/core/job.ts";
import type { ServiceOptions } from "../../src/core/service.ts";
import { openedByHand, recordFrom, type ServiceRecord } from "../../src/core/service-record.ts";
import { defineJob, type JobOptions, type JobDefinition } from "../../src/jobs/define-job.ts";
import { type Bench, createBench, type Hired } from "./worker-bench.ts";

/** What a service that is down answers. */
export const refused = (): Error => Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
/** Opens at the third failure for ten seconds, and is closed by one probe. */
export const breaker = { failures: 3, openFor: "10s", probes: 1, closeAfter: 1 } as const;
/** The pricing service with that breaker, and no ramp behind it. */
export const QUICK = { pricing: { breaker, ramp: 0 } } satisfies Record<string, ServiceOptions>;

/** A service, who calls it, and the job that does. */
export interface Scene {
  readonly bench: Bench;
  readonly calls: { readonly id: string; readonly at: number }[];
  readonly quote: JobDefinition;
  down: boolean;
}

/** A service that answers at once, or not; a worker that finds nobody serves the job is not hired yet. */
export function scene(options: Partial<JobOptions<unknown, unknown>> = {}, tookMs = 0): Scene {
  const bench = createBench(21);
  const calls: { id: string; at: number }[] = [];
  const made: Scene = {
    bench,
    calls,
    down: true,
    quote: defineJob("quote", {
      service: "pricing",
      maxAttempts: 5,
      backoff: fixed("1s"),
      async run(_, { job }) {
        calls.push({ id: job.id, at: bench.world.now });
        if (tookMs > 0) await bench.sleep(tookMs);
        if (made.down) throw refused();
      },
      ...options,
    }),
  };
  return made;
}

/** What the store has about a service. */
export async function recordOf({ store }: Bench, service = "pricing"): Promise<ServiceRecord> {
  const { services } = await store.control();
  return recordFrom(services.find(({ name }) => name === service)?.value ?? "");
}

/** Changes the record of the pricing service. */
export async function write(
  { store, world }: Bench,
  next: (record: ServiceRecord, now: number) => ServiceRecord,
): Promise<void> {
  const known = (await store.control()).services.find(({ name }) => name === "pricing");
  const record = next(recordFrom(known?.value ?? ""), world.now);
  expect(await store.setService("pricing", known?.version ?? 0, JSON.stringify(record))).toBe(true);
}

/** Opens its breaker by hand. */
export const openByHand = (bench: Bench, until: number | null): Promise<void> =>
  write(bench, (record, now) => openedByHand(record, "maintenance", until, now));

/** The states that a worker told of, in order. */
export const states = (hired: Hired): string[] =>
  hired.heard("breaker.changed").map((event) => (event.kind === "breaker.changed" ? event.state : ""));

/** Why jobs died. */
export const deaths = (hired: Hired): string[] =>
  hired
    .heard("job.dead")
    .map((event) => ("verdict" in event && event.verdict.kind === "dead" ? event.verdict.reason : ""));

/** Jobs as they are now. */
export const readAll = (bench: Bench, ids: readonly string[]): Promise<Job[]> => Promise.all(ids.map(bench.read));
