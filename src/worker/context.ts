// What a handler gets besides its input. Everything costly is created on first use.
import { RedriveError } from "../core/errors.ts";
import { resultOf } from "../core/item-outcome.ts";
import type { Job, Lease } from "../core/job.ts";
import { invalid, parseOptions } from "../core/options.ts";
import { encodePayload, encodeResult } from "../core/payload.ts";
import { type JobContext, snooze } from "../jobs/define-job.ts";
import { aboutJob, logAbout } from "../report/about-job.ts";
import type { Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { Run } from "./run.ts";
import type { Settler } from "./settler.ts";

/** The context of a run. A class, like `Run`, because there is one per job. */
export class RunContext implements JobContext {
  readonly #run: Run;
  readonly #parts: ContextDependencies;

  constructor(run: Run, parts: ContextDependencies) {
    this.#run = run;
    this.#parts = parts;
  }

  get log(): Log {
    return logAbout(this.#parts.log, aboutJob(this.#run.job, this.#run.trace));
  }

  /** Bound, because handlers often destructure their context. */
  get progress(): JobContext["progress"] {
    return (value) => this.#progress(value);
  }

  get complete(): JobContext["complete"] {
    return (result, options) => this.#complete(result, options);
  }

  get snooze(): JobContext["snooze"] {
    return snooze;
  }

  get job(): Job {
    return this.#run.job;
  }

  get attempt(): number {
    return this.#run.job.attempts + 1;
  }

  get maxAttempts(): number {
    return this.#run.job.maxAttempts;
  }

  get lease(): Lease {
    const { id, epoch, nonce } = this.#run.job;
    return { id, epoch, nonce };
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }

  async #progress(value: unknown): Promise<void> {
    const verdict = { kind: "progress", value: encodePayload(value) } as const;
    const settled = await new Promise((resolve) => this.#parts.settle(this.#run.job, verdict, resolve));
    if (settled !== "counted") throw leaseLost(this.job.id);
  }

  async #complete(value: unknown, options: { readonly tx: unknown }): Promise<void> {
    const { tx } = parseOptions(options, ["tx"], "complete");
    const { store } = this.#parts;
    if (!store.within)
      throw invalid(
        "complete",
        "a Postgres store, which can share your transaction",
        store.name,
        "return the result instead",
      );
    // A result that reports a failure is thrown, so that the transaction is rolled back.
    const result = encodeResult(await resultOf(await value));
    if (!(await store.within(tx).complete(this.lease, result, this.#run.job.said))) throw leaseLost(this.job.id);
    this.#run.completion = { kind: "complete", result };
  }
}

/** What a context works with. */
export interface ContextDependencies {
  readonly log: Log;
  readonly settle: Settler["settle"];
  readonly store: Pick<Store, "name" | "within">;
}

function leaseLost(id: string): RedriveError {
  return new RedriveError(
    "lease_lost",
    `The lease of job ${id} was lost: another worker may run it now. Stop working on it.`,
  );
}
