// The course of a simulation: a storm in which everybody works and everything goes wrong, a calm in which everything
// must come to its end, a few probes that must be on time, and at last the pruner.
import type { Store } from "../../src/store/store.ts";
import { attempt, NAMES, play, type Role, type Scene } from "./scene.ts";
import { newJob, produce } from "./producer.ts";
import { observe, operate } from "./operator.ts";
import { direct } from "./director.ts";
import { haunt } from "./ghost.ts";
import { work } from "./worker.ts";
import type { Actor } from "./world.ts";

/** When the calm began, what late is: one poll and the line there and back, and a quarter of a second. */
const SLACK_MS = 250;
const PROBES = 12;
const PAUSE_MS = 300;
const PROBE = { key: null, digest: null, deadlineMs: null };

/** Plays everything; afterwards the store is at rest, or the time for it has run out. */
export async function playAll(scene: Scene): Promise<{ readonly drained: boolean }> {
  const { world, settings } = scene;
  const cast: readonly (readonly [string, number, Role])[] = [
    ["producer", settings.producers, produce],
    ["worker", settings.workers, work],
    ["operator", settings.operators, operate],
    ["observer", 1, observe],
    ["ghost", 1, haunt],
    ["director", settings.runs ? 2 : 0, direct],
  ];
  for (const [name, count, role] of cast) for (let i = 1; i <= count; i++) play(scene, `${name}-${i}`, role);
  await world.run(scene.calmAt);
  // What was under way when the faults ended, late calls and pauses, is over by now.
  await world.run(scene.calmAt + 3 * settings.leaseMs);
  if (!(await rest(scene, scene.calmAt + settings.healMs))) return { drained: true };
  await probeAll(scene);
  await pruneAll(scene);
  return { drained: true };
}

/** Lets time pass until nothing waits or runs; false if that takes too long. */
async function rest(scene: Scene, until: number): Promise<boolean> {
  const { world, store } = scene;
  while (world.now < until) {
    const { queued, running } = await world.hold(store.count());
    if (queued + running === 0 && scene.busy === 0) return true;
    await world.run(world.now + 500);
  }
  return false;
}

async function probeAll(scene: Scene): Promise<void> {
  const { world, settings, scribe } = scene;
  scribe.write("test", "mark", "ok", { answer: "healthy", delayMs: settings.pollMs + SLACK_MS });
  await playOnce(scene, "prober", async (actor, store) => {
    for (let i = 0; i < PROBES; i++) {
      const job = newJob(actor, { ...PROBE, type: actor.dice.pick(NAMES.types), delayMs: i % 2 === 0 ? 0 : 300 });
      scene.known.push(job.id);
      await attempt(() => store.enqueue([job]));
      await actor.system.sleep(actor.dice.between(100, 300));
    }
  });
  await rest(scene, world.now + settings.healMs);
}

/**
 * Prunes of two programs in small steps, some states sooner than others, with keys that come back before and after their
 * time; neither says how long the jobs of the other are kept.
 */
async function pruneAll(scene: Scene): Promise<void> {
  const { world, settings } = scene;
  await playOnce(scene, "pruner", async (actor, store) => {
    const keyMs = 10 * settings.stormMs;
    const keepOf = () => ({ finishedMs: actor.dice.between(0, 20_000), deadMs: actor.dice.between(0, 30_000) });
    const programs = [keepOf(), keepOf()] as const;
    for (let i = 0; i < 6; i++) {
      const keep = programs[i % 2] as (typeof programs)[0];
      await store.prune({ keep, types: [], keyMs, laneMs: 0, limit: actor.dice.between(1, 20), isFirst: i === 0 });
      await store.count();
    }
    for (let i = 0; i < 6; i++) {
      // One worker with one slot may be all that serves its type, and nothing is to wait for another job.
      await actor.system.sleep(PAUSE_MS);
      await store.enqueue([newJob(actor, { deadlineMs: null, type: actor.dice.pick(NAMES.types) })]);
    }
  });
  await rest(scene, world.now + settings.healMs);
}

/** Plays a role to its end. */
async function playOnce(
  scene: Scene,
  name: string,
  role: (actor: Actor, store: Store) => Promise<void>,
): Promise<void> {
  let done = false;
  play(scene, name, async (actor, store) => {
    await role(actor, store);
    done = true;
  });
  await scene.world.run(scene.world.now + scene.settings.healMs, () => done);
}
