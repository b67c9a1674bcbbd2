// The last chance of a suspect: a child process that is a worker of its own, takes one job of the lane, runs it and
// ends. If the job kills it, the crash is charged to that job alone, with the child's end as evidence.
import type { Failure, Job } from "../core/job.ts";
import { runtimeFailure, type Verdict } from "../core/verdict.ts";
import type { JobDefinition } from "../queue/define-job.ts";
import type { Store } from "../store/store.ts";
import type { ChildEnd } from "../system/processes.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import { openContact } from "./contact.ts";
import { execute } from "./executor.ts";
import { startHeartbeat } from "./heartbeat.ts";
import type { Reporter } from "./report.ts";
import type { Run } from "./run.ts";
import type { WorkerSettings } from "./settings.ts";
import { openSettler, type Settled } from "./settler.ts";

/** Starts a child that runs one job of a lane under this worker id, and waits for its end. */
export type Isolation = (request: {
  readonly worker: string;
  readonly lane: number;
  /** Fires when the child has lost its job and is to be ended. */
  readonly signal: AbortSignal;
}) => Promise<ChildEnd>;

/** What the child tells its parent about the run. */
export interface AloneReport {
  readonly job: Job;
  readonly verdict: Verdict;
  readonly settled: Settled;
}

/** What a child's end says about the job it ran; null if it ended well. */
export function evidenceOf({ code, signal, output }: ChildEnd): Failure | null {
  if (code === 0) return null;
  const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
  const said = output.trim();
  const failure = runtimeFailure("crashed", "ProcessDied", `The job's own process died with ${how}.`);
  return { ...failure, code: signal ?? String(code), stack: said === "" ? null : `Last output:\n${said}` };
}

/** Inside the child: runs one job of the lane; returns false if there was none left. */
export async function runAlone(options: {
  readonly store: Store;
  readonly system: System;
  readonly worker: string;
  readonly lane: number;
  readonly jobs: readonly JobDefinition[];
  readonly settings: WorkerSettings;
  readonly process: { readonly pid: number; readonly host: string };
  readonly log: Log;
  readonly report: Reporter;
}): Promise<boolean> {
  const { store, system, worker, settings, log, report } = options;
  const { leaseMs, heartbeatMs: everyMs, stallMs, release } = settings;
  const never = new AbortController().signal;
  const contact = openContact(system, log, leaseMs / 2);
  await store.register({ id: worker, leaseMs, release, ...options.process });
  const { version } = await store.control();
  const quotas = [{ lane: options.lane, limit: 1 }];
  const claim = { worker, quotas, limit: 1, nonce: system.nonce(), control: version, ticket: 0, startedThrough: 0 };
  const [job] = (await store.claim(claim)).jobs;
  const definition = options.jobs.find(({ type }) => type === job?.type);
  if (job && definition) {
    const settler = openSettler({
      store,
      contact,
      worker: () => worker,
      startedThrough: () => 0,
      giveUp: never,
      onError: (error) => log.error({ error: String(error) }, "the verdict could not be written"),
    });
    const { settle } = settler;
    const executor = { system, log, report, settle, abortGraceMs: settings.abortGraceMs, heldMs: () => 0 };
    let run: Run | null = null;
    // Before the handler is called: it may block this thread for good.
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
        if (cancel.length > 0) run?.stop("cancel");
      },
      onFailure: () => undefined,
      onSilence: () => run?.stop("contact_lost"),
    });
    const ended = new Promise<void>((resolve) => {
      run = execute(job, definition, system.monotonic(), executor, () => resolve());
    });
    await ended;
    await settler.idle();
    heartbeat.stop();
  }
  await store.leave(worker);
  return job !== undefined;
}
