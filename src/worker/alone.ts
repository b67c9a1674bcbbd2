// The program of the child process for a job with one crash left: a worker that takes one job of a lane, runs it and
// exits.
import { countsAgainstService } from "../core/breaker.ts";
import { textOf } from "../core/failure.ts";
import type { Job } from "../core/job.ts";
import { pausedMs } from "../core/paused.ts";
import { parkedSpans, recordFrom } from "../core/service-record.ts";
import type { Outcome } from "../core/verdict.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { ClaimedJob, Control, Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import { openContact } from "../store/store-contact.ts";
import { execute } from "./executor.ts";
import type { Gate } from "../services/service-gate.ts";
import { startHeartbeat } from "./heartbeat.ts";
import type { AloneReport } from "./isolation.ts";
import type { Reporter } from "../report/reporter.ts";
import type { Run } from "./run.ts";
import type { WorkerSettings } from "./settings.ts";
import { openSettler } from "./settler.ts";
import { stopRevoked } from "./revoked-runs.ts";

/** What the child is given. */
export interface AloneOptions {
  readonly store: Store;
  readonly system: System;
  readonly worker: string;
  readonly lane: number;
  readonly control: number;
  /** As in the request. */
  readonly held: Outcome | null;
  /** Fires when the job must be released. */
  readonly stop: AbortSignal;
  readonly jobs: readonly JobDefinition[];
  readonly settings: WorkerSettings;
  readonly process: { readonly pid: number; readonly host: string };
  readonly log: Log;
  readonly report: (report: AloneReport) => void;
}

/** Runs one job of the lane; returns false if there was none left, or it may no longer be taken. */
export async function runAlone(options: AloneOptions): Promise<boolean> {
  const { store, system, worker, settings, lane, control } = options;
  const { leaseMs, release } = settings;
  await store.register({ id: worker, leaseMs, release, ...options.process });
  const now = await store.control();
  const quotas = [{ lane, limit: 1 }];
  const nonce = system.nonce();
  const [job] = (await store.claim({ worker, quotas, limit: 1, nonce, control, ticket: 0, startedThrough: 0 })).jobs;
  const definition = options.jobs.find(({ type }) => type === job?.type);
  if (job && definition) await runOne(job, definition, now, options);
  await store.leave(worker);
  return job !== undefined;
}

async function runOne(
  job: ClaimedJob,
  definition: JobDefinition,
  control: Control,
  options: AloneOptions,
): Promise<void> {
  const { store, system, worker, settings, log } = options;
  let heard: Outcome | null = null;
  const gate = gateOf(options, control, (outcome) => (heard = outcome));
  const report: Reporter = (of, verdict, settled) => options.report({ job: of, verdict, settled, heard });
  const { leaseMs, heartbeatMs: everyMs, stallMs, abortGraceMs } = settings;
  const settler = openSettler({
    store,
    system,
    contact: openContact(system, log),
    self: { id: worker, startedThrough: 0 },
    release: settings.release,
    giveUp: new AbortController().signal,
    onError: (error) => log.error({ error: textOf(error) }, "the verdict could not be written"),
  });
  const parked = control.services.flatMap(({ name, value }) => parkedSpans(recordFrom(value), name));
  const heldMs = (of: Job, until: number): number => pausedMs([...control.pauses, ...parked], of, of.dueAt, until);
  const executor = { system, log, report, store, settle: settler.settle, abortGraceMs, heldMs, gate };
  const taken = { store, worker, beganBefore: Number.POSITIVE_INFINITY, isSettling: settler.isSettling };
  let run: Run | null = null;
  // Before the handler is called, because the handler may block this thread permanently.
  const heartbeat = startHeartbeat({
    store,
    system,
    worker,
    leaseMs,
    everyMs,
    stallMs,
    startedThrough: () => 0,
    onAnswer: ({ alive, cancel }) => {
      if (!alive) run?.stop("lease_lost");
      else if (run) stopRevoked({ ...taken, runs: new Set([run]) }).catch(() => undefined);
      if (cancel.length > 0) run?.stop("cancel");
    },
    onFailure: () => undefined,
    onSilence: () => run?.stop("contact_lost"),
  });
  await new Promise<void>((resolve) => {
    run = execute(job, definition, system.monotonic(), executor, () => resolve());
    options.stop.addEventListener("abort", () => run?.stop("shutdown"));
    if (options.stop.aborted) run.stop("shutdown");
  });
  await settler.idle();
  heartbeat.stop();
}

/**
 * The gate of the child. The parent has decided that the job may start, and learns how the run ended; this gate only
 * decides whether a failure is charged: not that of a probe, nor one after the breaker has opened.
 */
function gateOf(
  { store, held }: AloneOptions,
  before: Control,
  onHeard: (outcome: Outcome) => void,
): Pick<Gate, "start" | "heard"> {
  return {
    start: () => held,
    async heard({ service }, outcome) {
      // Without the result, which is in the store and may be large.
      onHeard(outcome.kind === "completed" ? { kind: "completed", result: null } : outcome);
      if (outcome.kind !== "failed" || !countsAgainstService(outcome.failure.class)) return outcome;
      const after = await store.control().catch(() => before);
      const isDown = [before, after].some(({ services }) => {
        const found = services.find(({ name }) => name === service);
        return found !== undefined && recordFrom(found.value).breaker.state !== "closed";
      });
      return isDown ? { kind: "released", reason: "breaker", delayMs: 0 } : outcome;
    },
  };
}
