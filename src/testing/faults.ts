// Faults that a test asks for, by job type: what happens instead of the handler, or before it.
import { type Duration, parseDuration } from "../core/duration.ts";
import { parseNumber, parseOptions } from "../core/options.ts";
import type { JobContext, JobDefinition } from "../jobs/define-job.ts";
import type { System } from "../system/system.ts";

/** How often a fault happens. */
export interface FaultOptions {
  /** Runs that it happens to; default 1, Infinity for all. */
  readonly times?: number;
}

/** The worker of a run with a fault. */
export interface Faulty {
  readonly system: System;
  /** The run waits for the fake clock, because it is slow or its handler has returned; or it no longer does. */
  waits(context: JobContext, waits: boolean): void;
  /** The worker dies. */
  crash(): void;
}

type Bad = { readonly kind: "fail"; readonly error: unknown } | { readonly kind: "crash" };

interface Planned<T> {
  readonly fault: T;
  left: number;
}

/** The planned faults. */
export class Faults {
  readonly #slow = new Map<string, Planned<number>[]>();
  readonly #bad = new Map<string, Planned<Bad>[]>();

  fail(type: string, error: unknown, options?: FaultOptions): void {
    plan(this.#bad, type, { kind: "fail", error }, options);
  }

  crash(type: string, options?: FaultOptions): void {
    plan(this.#bad, type, { kind: "crash" }, options);
  }

  slow(type: string, duration: Duration, options?: FaultOptions): void {
    plan(this.#slow, type, parseDuration(duration, "slowNext"), options);
  }

  /** The definition with its faults before the handler. */
  around(definition: JobDefinition, worker: Faulty): JobDefinition {
    const { type } = definition;
    return {
      ...definition,
      run: async (input, context) => {
        const slowMs = take(this.#slow, type);
        if (slowMs !== null) await beSlow(slowMs, context, worker);
        const bad = take(this.#bad, type);
        if (bad?.kind === "crash") return died(worker);
        try {
          if (bad?.kind === "fail") throw bad.error;
          return await definition.run(input, context);
        } finally {
          // The worker may tell the fleet of a failure before it settles the run, and waits for the fake clock to do so.
          worker.waits(context, true);
        }
      },
    };
  }
}

function plan<T>(faults: Map<string, Planned<T>[]>, type: string, fault: T, options: FaultOptions = {}): void {
  const { times = 1 } = parseOptions(options, ["times"], "options");
  const left = parseNumber(times, "times", { min: 1, max: 1_000_000, integer: true, infinite: true });
  faults.set(type, [...(faults.get(type) ?? []), { fault, left }]);
}

/** The next fault of the type, in the order of the requests. */
function take<T>(faults: Map<string, Planned<T>[]>, type: string): T | null {
  const all = faults.get(type) ?? [];
  const [first] = all;
  if (!first) return null;
  first.left -= 1;
  if (first.left <= 0) all.shift();
  return first.fault;
}

/** Takes time on the fake clock; stops when asked to, as a handler should. */
async function beSlow(ms: number, context: JobContext, worker: Faulty): Promise<void> {
  worker.waits(context, true);
  await worker.system.sleep(ms, context.signal);
  worker.waits(context, false);
  if (context.signal.aborted) throw context.signal.reason;
}

function died(worker: Faulty): Promise<never> {
  worker.crash();
  return new Promise(() => undefined);
}
