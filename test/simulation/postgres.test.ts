// Some of the seeds that once broke a guarantee, on Postgres. Its answers come in the order of the server, so a seed gives the same
// faults and not the same history to the letter; what it showed must hold all the same.
import { expect, inject, it } from "vitest";
import { postgresWorld } from "../support/postgres-world.ts";
import { REGRESSIONS } from "./regressions.ts";
import { explain, sweep } from "./sweep.ts";

/** All of them take half a minute; a few show that the world of a seed holds on a server. */
const FEW = 3;

it.each(REGRESSIONS.slice(0, FEW))(
  "the guarantees hold on Postgres for seed %i, which once broke them",
  async (seed) => {
    const time = { now: 0 };
    const { store, close } = await postgresWorld(inject("postgres18"), time);
    // It is as late on the server as it is in the world of the seed.
    const wrap = (_bare: unknown, clock: { now(): number }) => {
      Object.defineProperty(time, "now", { get: () => clock.now() });
      return { ...store, close };
    };
    const { bad, totals } = await sweep("memory", [seed], { wrap });
    expect(bad.map(explain).join("\n")).toBe("");
    expect(totals.jobs).toBeGreaterThan(0);
  },
  60_000,
);
