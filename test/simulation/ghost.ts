// The ghost: it settles runs it never had, with leases that were never given out.
import type { Store } from "../../src/store/store.ts";
import { attempt, type Scene } from "./scene.ts";
import type { Actor } from "./world.ts";

/** Tries to end runs until the storm is over. */
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
