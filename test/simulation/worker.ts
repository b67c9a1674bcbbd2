// A worker of the simulation: the real one with all its parts, on virtual time, in a process that can be killed. Some
// work until something ends them, some are stopped in good order and replaced, some drain.
import { resolveLimits } from "../../src/core/service.ts";
import { sayingMayHold } from "../support/history/in-hand.ts";
import type { Store } from "../../src/store/store.ts";
import { driverOf } from "../../src/operate/redrives.ts";
import { NO_LIMITS } from "../../src/services/holding.ts";
import { redriveService } from "../../src/upkeep/redrives.ts";
import { startUpkeep } from "../../src/upkeep/upkeep.ts";
import type { Log } from "../../src/system/log.ts";
import type { WorkerEvent } from "../../src/report/reporter.ts";
import type { Line } from "../support/history/event.ts";
import { resolveWorker, type WorkerSettings } from "../../src/worker/settings.ts";
import type { QueueWorker } from "../../src/worker/worker.ts";
import { definitionsFor } from "./handler.ts";
import { isolationOf } from "./isolation.ts";
import { reachStore, withPulse } from "./line.ts";
import type { OwnProcess } from "./processes.ts";
import type { Again, Scene } from "./scene.ts";
import type { Actor } from "./world.ts";

const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** A service whose breaker opens and closes again within a storm; a deploy lowers its thresholds worker by worker. */
const FRAGILE = { breaker: { failures: 2, window: 3000, openFor: 500, probes: 2, closeAfter: 1 }, ramp: 200 };
const BEFORE_DEPLOY = { ...FRAGILE, breaker: { ...FRAGILE.breaker, probes: 3, closeAfter: 3 } };
/** The same where the deploy replaces all of them: a breaker that many probes close is mostly met half-open. */
const BEFORE_ALL = { ...FRAGILE, breaker: { ...FRAGILE.breaker, probes: 8, closeAfter: 8 } };

/** One life of a worker process; returns when the process is to be replaced. */
export async function work(actor: Actor, store: Store, scene: Scene): Promise<Again> {
  const absent = noteAbsence(actor, scene);
  let replace = (): void => {};
  const spent = new Promise<void>((resolve) => {
    replace = resolve;
  });
  const process = scene.processes.enter(actor);
  const emit = (event: WorkerEvent): void => {
    if (event.kind === "worker.spent") replace();
    else write(event, actor, scene);
  };
  const settings = settingsOf(actor, scene, leaseOf(actor, scene));
  const isIsolated = scene.world.dice(`isolation:${actor.name}`).chance(scene.settings.isolated);
  const worker = scene.hire({
    store: scene.sabotage(
      signed(actor.dice.chance(0.5) ? withPulse(store, actor) : store, process, actor, scene),
      actor,
    ),
    system: actor.system,
    jobs: definitionsFor(actor, scene),
    settings,
    limits: resolveLimits(scene.settings.fragile ? { services: { media: fragileFor(actor, scene) } } : {}),
    log: SILENT,
    events: { emit },
    process,
    isolation: isIsolated ? isolationOf(actor, scene, settings) : null,
  });
  const rolled = scene.world.now >= scene.calmAt ? stay : actor.dice.pick([stay, stay, stay, stopAfterAWhile, drain]);
  const life = isDeployedOver(actor, scene) ? stopAfterAWhile : rolled;
  const driving = scene.settings.runs ? driveRuns(worker, actor, scene) : null;
  await life({ worker, actor, scene, absent, spent });
  await driving?.stop();
  return "again";
}

/** What a life is lived with. */
interface Living {
  readonly worker: QueueWorker;
  readonly actor: Actor;
  readonly scene: Scene;
  /** Says whether this worker is away or about to be, so that nothing is expected of it. */
  readonly absent: (away: boolean) => void;
  /** Resolves when so many slots are lost that the process should be replaced. */
  readonly spent: Promise<void>;
}

async function stay({ worker, absent, spent }: Living): Promise<void> {
  await worker.start();
  absent(false);
  await spent;
  absent(true);
  await worker.stop();
}

/** Stopped while it works, perhaps before it has begun, and perhaps by somebody impatient. */
async function stopAfterAWhile({ worker, actor, scene }: Living): Promise<void> {
  const { dice, system } = actor;
  const started = worker.start();
  await system.sleep(dice.between(0, scene.settings.stormMs / 2));
  const stopped = worker.stop({ withinMs: dice.pick([0, 200, 2000, 25_000]) });
  scene.scribe.write(actor.name, "mark", "ok", { answer: "stopping", worker: worker.id });
  if (dice.chance(0.3)) system.after(dice.between(0, 1000), () => void worker.stop({ withinMs: 0 }));
  await Promise.all([started, stopped]);
}

async function drain({ worker, actor, scene }: Living): Promise<void> {
  const { dice, system } = actor;
  const interrupt = (): void => {
    scene.scribe.write(actor.name, "mark", "ok", { answer: "stopping", worker: worker.id });
    void worker.stop({ withinMs: 500 });
  };
  if (dice.chance(0.3)) system.after(dice.between(10, scene.settings.stormMs), interrupt);
  await worker.drain({ graceMs: dice.pick([0, 100, 1000]) });
}

function fragileFor(actor: Actor, scene: Scene): typeof FRAGILE {
  if (isDeployedOver(actor, scene)) return BEFORE_ALL;
  return actor.name === "worker-1.1" ? BEFORE_DEPLOY : FRAGILE;
}

/** True for the first life of a worker where a deploy replaces them all. */
function isDeployedOver({ name }: Actor, { settings }: Scene): boolean {
  return settings.deploys === true && name.endsWith(".1");
}

/** Some are trusted for twice as long as the others. */
function leaseOf({ name }: Actor, { world, settings }: Scene): number {
  return world.dice(`lease:${name}`).pick([1, 1, 2]) * settings.leaseMs;
}

function settingsOf({ dice }: Actor, { settings }: Scene, leaseMs: number): WorkerSettings {
  return resolveWorker({
    concurrency: settings.concurrency,
    lease: leaseMs,
    heartbeat: settings.beatMs,
    poll: settings.workerPollMs ?? settings.pollMs,
    abortGrace: dice.pick([0, 200, settings.leaseMs]),
    onContactLost: dice.pick(["abort", "abort", "continue"]),
  });
}

/** Notes under which ids the process works, and that the history hears of every handler these start. */
function signed(store: Store, process: OwnProcess, actor: Actor, { scribe, settings }: Scene): Store {
  const write = (line: Line): void => {
    if (actor.alive) scribe.write(actor.name, "mark", "ok", line);
  };
  const { monotonic } = actor.system;
  return {
    ...sayingMayHold(store, { slots: settings.concurrency, monotonic, write }),
    register(worker) {
      process.signs(worker.id);
      // A run may have killed the process in this very turn; the dead sign nothing.
      write({ answer: "watched", worker: worker.id });
      return store.register(worker);
    },
  };
}

/** The upkeep of a worker that drives redrive runs, over a line of its own. */
function driveRuns(worker: QueueWorker, actor: Actor, scene: Scene): { stop(): Promise<void> } {
  const store = scene.sabotage(reachStore(scene.store, actor, scene), actor);
  const { system } = actor;
  const driver = driverOf({ store, system, log: SILENT, limits: NO_LIMITS }, () => worker.id, worker.signs);
  const records = { note: () => undefined, end: async () => undefined };
  const upkeep = startUpkeep([redriveService(driver)], { system, log: SILENT, records, contact: worker.contact });
  return {
    async stop() {
      await upkeep.stop();
      await driver.release().catch(() => undefined);
    },
  };
}

/** Writes down what the worker says became of a run. */
function write(event: WorkerEvent, actor: Actor, { scribe }: Scene): void {
  if (!("job" in event) || event.kind === "job.stale") return;
  const { id, epoch, generation, worker } = event.job;
  scribe.write(actor.name, "report", "ok", { job: id, epoch, generation, worker, answer: event.verdict.kind });
}

/** Keeps the world from being called at rest while a worker is away. */
function noteAbsence(actor: Actor, scene: Scene): (away: boolean) => void {
  let counted = false;
  const note = (away: boolean): void => {
    if (away !== counted) scene.busy += away ? 1 : -1;
    counted = away;
  };
  note(true);
  actor.onEnd(() => note(false));
  return note;
}
