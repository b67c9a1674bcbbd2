// The loop that all upkeep services share: a service does one step and returns how long to wait; the loop waits,
// continues when a step fails, and stops when asked.
import { textOf } from "../core/failure.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import type { Contact } from "../store/store-contact.ts";
import type { Records } from "./upkeep-records.ts";

/** Something that is done repeatedly. */
export interface Service {
  readonly name: string;
  /** How long to wait before the first step, in milliseconds; default not at all. */
  readonly firstMs?: number;
  /** How long to wait after a step that failed; default 10 s. */
  readonly retryMs?: number;
  /** Does one step; answers how long to wait before the next, in milliseconds. */
  step(signal: AbortSignal): Promise<number>;
}

/** How long to wait after a step that failed. */
const AFTER_FAILURE_MS = 10_000;

/** What upkeep works with. */
export interface UpkeepOptions {
  readonly system: System;
  readonly log: Log;
  readonly records: Records;
  /** The contact of the worker, which reports an outage once for all services. */
  readonly contact: Pick<Contact, "isAway">;
}

/** Runs services until stopped; `stop` waits for steps under way. Every step is recorded. */
export function startUpkeep(
  services: readonly Service[],
  { system, log, records, contact }: UpkeepOptions,
): { stop(): Promise<void> } {
  const ending = new AbortController();
  const run = async ({ name, step, firstMs = 0, retryMs = AFTER_FAILURE_MS }: Service): Promise<void> => {
    if (firstMs > 0) {
      records.note(name, { ms: null, error: null, waitMs: Math.round(firstMs) });
      await system.sleep(firstMs, ending.signal);
    }
    while (!ending.signal.aborted) {
      let [waitMs, error] = [retryMs, null as string | null];
      const from = system.monotonic();
      try {
        waitMs = await step(ending.signal);
      } catch (cause) {
        error = textOf(cause);
        if (!contact.isAway(name, cause))
          log.warn({ service: name, error }, "an upkeep step failed; it will be retried");
      }
      records.note(name, { ms: Math.round(system.monotonic() - from), error, waitMs: Math.round(waitMs) });
      await system.sleep(waitMs, ending.signal);
    }
  };
  const running = services.map(run);
  return {
    async stop() {
      ending.abort();
      await Promise.all(running);
    },
  };
}
