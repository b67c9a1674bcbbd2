// A caller on virtual time: what it waits for takes no time at all, and every instant is exact.
import type { System } from "../../src/system/system.ts";
import { createWorld, GENESIS, type World } from "../simulation/world.ts";

const LONGEST_MS = 30 * 86_400_000;

/** Runs the body in a world of its own until it ends; fails if it waits for something that never happens. */
export async function onVirtualTime(body: (system: System, world: World) => Promise<void>): Promise<void> {
  const world = createWorld(7);
  let outcome: { readonly error?: unknown } | null = null;
  world.spawn("caller", async ({ system }) => {
    outcome = await body(system, world).then(
      () => ({}),
      (error: unknown) => ({ error }),
    );
  });
  await world.run(GENESIS + LONGEST_MS, () => outcome !== null);
  world.end();
  const end = outcome as { readonly error?: unknown } | null;
  if (end === null) throw new Error("The body waits for something that never happens.");
  if ("error" in end) throw end.error;
}
