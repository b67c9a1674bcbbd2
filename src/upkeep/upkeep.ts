// The loop that all services of upkeep share: a service does one step and says how long to wait; the loop waits, goes on
// when a step fails, and stops when told to.
import { textOf } from "../core/failure.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";

/** Something that is done again and again. */
export interface Service {
  readonly name: string;
  /** One step; answers how long to wait before the next, in milliseconds. */
  step(signal: AbortSignal): Promise<number>;
}

/** How long to wait after a step that failed. */
const AFTER_FAILURE_MS = 10_000;

/** Runs services until stopped; `stop` waits for steps under way. */
export function startUpkeep(
  services: readonly Service[],
  { system, log }: { readonly system: System; readonly log: Log },
): { stop(): Promise<void> } {
  const ending = new AbortController();
  const run = async ({ name, step }: Service): Promise<void> => {
    while (!ending.signal.aborted) {
      let waitMs = AFTER_FAILURE_MS;
      try {
        waitMs = await step(ending.signal);
      } catch (error) {
        log.warn({ service: name, error: textOf(error) }, "a step of upkeep failed; it is tried again");
      }
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
