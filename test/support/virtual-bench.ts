// Benches on virtual time over every store that people use. On Postgres, time stands still while the server works.
import { inject, onTestFinished } from "vitest";
import { createWorld } from "../simulation/world.ts";
import { postgresWorld } from "./postgres-world.ts";
import { around, type Bench, createBench } from "./worker-bench.ts";

/** The stores that run on virtual time. */
export type VirtualStore = "memory" | "sqlite" | "postgres";

/** What `npm run prove -- outages` asks for in minutes; null in the test command, which plays less. */
export const PROVE_MINUTES = process.env["REDRIVE_PROVE_OUTAGE_MINUTES"]
  ? Number(process.env["REDRIVE_PROVE_OUTAGE_MINUTES"])
  : null;

const ALL: readonly VirtualStore[] = ["memory", "sqlite", "postgres"];

/**
 * Where scenes are played: on every store when they are to be proven. The test command leaves out Postgres, where each step
 * costs a round trip; that stores do the same is what the conformance suite and the random sequences are for.
 */
export const SCENE_STORES: readonly VirtualStore[] = PROVE_MINUTES === null ? ["memory", "sqlite"] : ALL;
/** The same for scenes that have a short form for Postgres. */
export const SHORT_STORES: readonly VirtualStore[] = PROVE_MINUTES === null ? ["memory", "postgres"] : ALL;

/** A bench on a store of its own, which ends with the test. */
export async function openBench(seed: number, kind: VirtualStore): Promise<Bench> {
  if (kind !== "postgres") return createBench(seed, kind);
  const world = createWorld(seed);
  const clock = {
    get now() {
      return world.now;
    },
  };
  const { store, close } = await postgresWorld(inject("postgres18"), clock);
  onTestFinished(close);
  return createBench(
    seed,
    around(store, (_, next) => world.hold(next())),
    world,
  );
}

/** Whether less is played: on Postgres, where each step costs a round trip, unless it is to be proven. */
export function isShort(kind: VirtualStore): boolean {
  return kind === "postgres" && PROVE_MINUTES === null;
}
