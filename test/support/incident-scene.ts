// Plays an incident on a real store with real workers and a fake clock: releases come and go, services fail and return,
// payloads are good or bad, operators act. An incident is a list of steps, each a function of the scene.
import type { ServiceOptions } from "../../src/core/service.ts";
import { defineJob, fixed, type JobDefinition } from "../../src/index.ts";
import type { CauseView } from "../../src/operate/causes.ts";
import { createTestRedrive, type TestRedrive } from "../../src/testing/index.ts";
import type { RedriveWorker } from "../../src/worker/redrive-worker-api.ts";

/** What triage may say of a cause. */
export type Label = "redrive" | "canary" | "repair" | "wait" | "unknown";

/** How a type of jobs is defined; by default two attempts, two seconds apart. */
export interface SceneJob {
  readonly service?: string;
  readonly attempts?: number;
  readonly timeout?: string;
  readonly deadline?: string;
}

/** The input of every job of a scene. */
export type ScenePayload = Readonly<Record<string, unknown>>;

/** What goes wrong, and for which runs. */
export interface SceneFault {
  readonly type: string;
  /** What the handler throws; "hang" for a handler that waits until it is aborted. */
  readonly error: ((input: ScenePayload) => unknown) | "hang";
  /** Only runs of these releases. */
  readonly releases?: readonly string[];
  /** Only payloads for which this holds. */
  readonly hits?: (input: ScenePayload) => boolean;
  /** Only one run in so many. */
  readonly oneIn?: number;
}

/** An incident as an engineer would tell it, and what they would answer. */
export interface Incident {
  readonly name: string;
  /** What happened, in one or two sentences. */
  readonly story: string;
  /** The right advice; two where both are equally right. */
  readonly label: readonly Label[];
  /** True if letters that are sent now would fail again by it. */
  readonly bugStillThere: boolean;
  /** A part of the error message of the cause that is asked about. */
  readonly about: string;
  readonly jobs: Readonly<Record<string, SceneJob>>;
  readonly services?: Readonly<Record<string, ServiceOptions>>;
  readonly play: readonly SceneStep[];
}

/** One thing that happens. */
export type SceneStep = (scene: IncidentScene) => Promise<unknown>;

/** An incident under way. */
export interface IncidentScene {
  readonly redrive: TestRedrive;
  readonly faults: Map<string, SceneFault>;
  /** The workers at work, each with its release. */
  readonly workers: { readonly worker: RedriveWorker; readonly release: string | null }[];
  /** Jobs enqueued so far. */
  sent: number;
  /** The cause that is asked about; throws unless there is exactly one with dead letters. */
  cause(): Promise<CauseView>;
}

/** Plays the incident and hands the store as it then is to `ask`, with the cause that is asked about. */
export async function playIncident<T>(
  incident: Incident,
  ask: (redrive: TestRedrive, cause: CauseView) => Promise<T>,
): Promise<T> {
  const faults = new Map<string, SceneFault>();
  const releases = new Map<string, string | null>();
  const runs = new Map<SceneFault, number>();
  const strike = async (fault: SceneFault, input: ScenePayload, signal: AbortSignal): Promise<void> => {
    if (fault.error !== "hang") throw fault.error(input);
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
  };
  const jobs = Object.entries(incident.jobs).map(
    ([type, { service, attempts = 2, timeout, deadline }]): JobDefinition =>
      defineJob(type, {
        maxAttempts: attempts,
        maxCrashes: 2,
        backoff: fixed("2s"),
        ...(service === undefined ? {} : { service }),
        ...(timeout === undefined ? {} : { timeout }),
        ...(deadline === undefined ? {} : { deadline }),
        async run(input: ScenePayload, { job, signal }) {
          const release = releases.get(job.worker ?? "") ?? "";
          for (const fault of faults.values()) {
            if (fault.type !== type || fault.hits?.(input) === false) continue;
            if (fault.releases && !fault.releases.includes(release)) continue;
            const count = (runs.get(fault) ?? 0) + 1;
            runs.set(fault, count);
            if (count % (fault.oneIn ?? 1) === 0) await strike(fault, input, signal);
          }
        },
      }) as JobDefinition,
  );
  await using redrive = await createTestRedrive({
    jobs,
    services: incident.services ?? {},
    log: "silent",
    actor: "ops",
    patience: "5ms",
  });
  const scene: IncidentScene = {
    redrive,
    faults,
    workers: noting(releases),
    sent: 0,
    cause: () => causeAbout(redrive, incident.about),
  };
  for (const step of incident.play) await step(scene);
  return ask(redrive, await scene.cause());
}

/** A list of workers that notes their releases by id, also after they have stopped. */
function noting(releases: Map<string, string | null>): IncidentScene["workers"] {
  const workers: IncidentScene["workers"] = [];
  const push = workers.push.bind(workers);
  workers.push = (...added) => {
    for (const { worker, release } of added) releases.set(worker.id, release);
    return push(...added);
  };
  return workers;
}

async function causeAbout(redrive: TestRedrive, about: string): Promise<CauseView> {
  const { items } = await redrive.causes.list();
  const found = items.filter(({ sample }) => sample?.message.includes(about));
  const [only] = found;
  if (found.length === 1 && only) return only;
  const seen = items.map(({ sample, dead }) => `${dead} × ${sample?.name}: ${sample?.message}`).join("; ");
  throw new Error(
    `Expected one cause with dead letters about ${JSON.stringify(about)}; got ${found.length}. All: ${seen}`,
  );
}
