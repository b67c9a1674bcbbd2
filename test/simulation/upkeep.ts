// Reapers and the ghost. A reaper lists lost runs, lets core judge them and settles under the lease it was shown; it
// keeps still until it has been in contact for a full lease. A ghost settles runs it never had.
import { verdict } from "../../src/core/verdict.ts";
import type { Store } from "../../src/store/store.ts";
import { attempt, type Scene } from "./scene.ts";
import type { Actor } from "./world.ts";

/** Reaps for ever. */
export async function reap(actor: Actor, store: Store, scene: Scene): Promise<void> {
  const { system, dice } = actor;
  let contactSince: number | null = null;
  for (;;) {
    await system.sleep(dice.between(100, scene.settings.beatMs));
    if (contactSince === null || system.monotonic() - contactSince < scene.settings.leaseMs) {
      const heard = await attempt(() => store.control());
      contactSince = heard === null ? null : (contactSince ?? system.monotonic());
    } else if (!(await reapOnce(actor, store, scene))) contactSince = null;
  }
}

async function reapOnce(actor: Actor, store: Store, scene: Scene): Promise<boolean> {
  const gone = [...scene.gone];
  for (const worker of gone) scene.scribe.write(actor.name, "gone", "ok", { worker });
  const runs = await attempt(() => store.expired({ gone, limit: actor.dice.pick([1, 5, 100]) }));
  if (runs === null) return false;
  if (runs.length === 0) return true;
  const settlements = runs.map(({ job, lease, started }) => {
    const outcome = { kind: "lost", started, worker: job.worker ?? "?" } as const;
    return { ...lease, verdict: verdict(job, outcome, scene.policy, 0, actor.system.random) };
  });
  return (await attempt(() => store.settle({ settlements }))) !== null;
}

/** Tries to end runs with leases that were never given out. */
export async function haunt(actor: Actor, store: Store, scene: Scene): Promise<void> {
  const { dice, system } = actor;
  while (scene.world.now < scene.calmAt) {
    await system.sleep(dice.between(200, 2000));
    if (scene.known.length === 0) continue;
    const [job] = (await attempt(() => store.get([dice.pick(scene.known)]))) ?? [];
    if (!job) continue;
    const epoch = job.epoch + dice.pick([0, 0, 1, -1]);
    const settlements = [
      { id: job.id, epoch, nonce: system.nonce(), verdict: { kind: "complete", result: null } as const },
    ];
    await attempt(() => store.settle({ settlements }));
  }
}
