// What can happen in an incident: deployments, traffic, faults, and what operators do. Each makes one step.
import type { Duration } from "../../src/core/duration.ts";
import { parseDuration } from "../../src/core/duration.ts";
import type { IncidentScene, SceneFault, ScenePayload, SceneStep } from "./incident-scene.ts";

/** Workers of this release take over; with `beside` the others go on. Null for workers without a release. */
export function deploy(release: string | null, options: { readonly beside?: boolean } = {}): SceneStep {
  return async (scene) => {
    if (!options.beside) await stopAll(scene);
    await startWorker(scene, release);
  };
}

/** All workers stop. */
export const stopWorkers: SceneStep = (scene) => stopAll(scene);

/** So many jobs are enqueued, evenly over the time, and run. */
export function traffic(
  type: string,
  count: number,
  over: Duration,
  payload: ScenePayload | ((n: number) => ScenePayload) = {},
  options: { readonly tenant?: string } = {},
): SceneStep {
  return async (scene) => {
    const overMs = parseDuration(over, "over");
    for (let n = 0; n < count; n += 1) {
      const own = typeof payload === "function" ? payload(n) : payload;
      scene.sent += 1;
      await scene.redrive.enqueue(
        type,
        { n: scene.sent, ...own },
        { ...options, delay: Math.floor((n * overMs) / count) },
      );
    }
    await elapse(scene, overMs);
  };
}

/** So many jobs are enqueued at once, more than one worker can take; then time passes. */
export function burst(type: string, count: number, over: Duration): SceneStep {
  return async (scene) => {
    await scene.redrive.enqueueMany(
      type,
      Array.from({ length: count }, () => ({ n: (scene.sent += 1) })),
    );
    await elapse(scene, parseDuration(over, "over"));
  };
}

/** Several steps of traffic at the same time. */
export function together(over: Duration, ...parts: readonly SceneStep[]): SceneStep {
  return async (scene) => {
    const { clock } = scene.redrive;
    const standing = { ...clock, advance: async () => undefined, set: () => undefined };
    const still = { ...scene, redrive: { ...scene.redrive, clock: standing } } as IncidentScene;
    for (const part of parts) {
      still.sent = scene.sent;
      await part(still);
      scene.sent = still.sent;
    }
    await elapse(scene, parseDuration(over, "over"));
  };
}

/** From now on this goes wrong. */
export const fail =
  (name: string, fault: SceneFault): SceneStep =>
  async ({ faults }) =>
    faults.set(name, fault);

/** It goes wrong no more. */
export const mend =
  (name: string): SceneStep =>
  async ({ faults }) => {
    if (!faults.delete(name)) throw new Error(`There is no fault ${name} to mend.`);
  };

/** Time passes with workers at work, where there are any. */
export const pass =
  (time: Duration): SceneStep =>
  (scene) =>
    elapse(scene, parseDuration(time, "time"));

/** Time passes with no worker and no traffic; then workers of the same releases start again. */
export function quiet(time: Duration): SceneStep {
  return async (scene) => {
    const before = scene.workers.map(({ release }) => release);
    await stopAll(scene);
    scene.redrive.clock.set(scene.redrive.clock.now() + parseDuration(time, "time"));
    for (const release of before) await startWorker(scene, release);
    await elapse(scene, 2_000);
  };
}

/** An operator marks the cause as fixed, in a release or from now on. */
export const fix =
  (release?: string): SceneStep =>
  async (scene) =>
    scene.redrive.causes.fix((await scene.cause()).fingerprint, release === undefined ? {} : { in: release });

/** An operator mutes the cause. */
export const mute =
  (time: Duration): SceneStep =>
  async (scene) =>
    scene.redrive.causes.mute((await scene.cause()).fingerprint, { for: time });

/** An operator sends letters of the cause back, at most so many. */
export function retry(most: number): SceneStep {
  return async (scene) => {
    const { fingerprint } = await scene.cause();
    const { items } = await scene.redrive.deadLetters.list({ fingerprint, limit: most });
    const answer = await scene.redrive.deadLetters.retry(items.map(({ job }) => job.id));
    if (answer.redriven !== Math.min(most, items.length)) throw new Error(`Only ${answer.redriven} were sent back.`);
  };
}

/** An operator starts a redrive run over the cause, or over so many of its letters, with these canaries. */
export function startRun(options: {
  readonly limit?: number;
  readonly canary?: readonly number[] | "none";
  readonly patch?: string;
}): SceneStep {
  return async (scene) => {
    const { limit, canary = "none", patch } = options;
    const { fingerprint } = await scene.cause();
    const selection = { fingerprint, ...(limit === undefined ? {} : { limit }) };
    const plan = await scene.redrive.redrives.plan(selection, patch === undefined ? {} : { patch });
    await scene.redrive.redrives.start(plan.id, { canary });
  };
}

/** An operator opens the breaker of a service by hand. */
export const openBreaker =
  (service: string, reason: string): SceneStep =>
  ({ redrive }) =>
    redrive.breakers.open(service, { reason });

/** An operator closes it. */
export const closeBreaker =
  (service: string): SceneStep =>
  ({ redrive }) =>
    redrive.breakers.close(service);

/** An operator cancels the jobs of a type that wait. */
export const cancelWaiting =
  (type: string): SceneStep =>
  ({ redrive }) =>
    redrive.jobs.cancel({ type, state: "queued" });

/** So many jobs are enqueued, and the process of the worker dies under each run of theirs. */
export function crash(type: string, jobs: number, payload: ScenePayload = {}): SceneStep {
  return async (scene) => {
    const before = scene.workers.map(({ release }) => release);
    await stopAll(scene);
    for (let n = 0; n < jobs; n += 1) {
      scene.sent += 1;
      await scene.redrive.enqueue(type, { n: scene.sent, ...payload });
    }
    scene.redrive.crashNext(type, { times: jobs * 2 });
    await scene.redrive.drain({ until: "idle" });
    for (const release of before) await startWorker(scene, release);
  };
}

/** The scene is as meant: the breaker of the service has this state. */
export const breakerIs =
  (service: string, expected: string): SceneStep =>
  async ({ redrive }) => {
    const { state } = await redrive.breakers.get(service);
    if (state !== expected) throw new Error(`The breaker of ${service} should be ${expected}; it is ${state}.`);
  };

/** The scene is as meant: the cause has so many letters. */
export const letters =
  (least: number, most = 10_000): SceneStep =>
  async (scene) => {
    const { dead } = await scene.cause();
    if (dead < least || dead > most)
      throw new Error(`The cause should have ${least} to ${most} letters; it has ${dead}.`);
  };

/** The scene is as meant: so many jobs have completed, at least. */
export const completed =
  (least: number): SceneStep =>
  async ({ redrive }) => {
    const { completed: count } = await redrive.jobs.count();
    if (count < least) throw new Error(`At least ${least} jobs should be completed; ${count} are.`);
  };

/** Lets time pass. Without a worker it jumps: otherwise the fake clock would hire one to do the work. */
async function elapse({ redrive: { clock }, workers }: IncidentScene, ms: number): Promise<void> {
  if (workers.length > 0) await clock.advance(ms);
  else clock.set(clock.now() + ms);
}

async function startWorker(scene: IncidentScene, release: string | null): Promise<void> {
  const worker = scene.redrive.worker({
    concurrency: 10,
    poll: "1m",
    lease: "1h",
    heartbeat: "1m",
    ...(release === null ? {} : { release }),
  });
  scene.workers.push({ worker, release });
  await worker.start();
}

async function stopAll(scene: IncidentScene): Promise<void> {
  for (const { worker } of scene.workers.splice(0)) await worker.stop();
}
