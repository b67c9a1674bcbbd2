// Some of the seeds that once broke a guarantee, on Postgres. Its answers come in the order of the server, so a seed gives the same
// faults and not the same history to the letter; what it showed must hold all the same.
import { expect, inject, it } from "vitest";
import { postgresWorld } from "../support/postgres-world.ts";
import { REGRESSIONS } from "./regressions.ts";
import { explain, sweep } from "./sweep.ts";

/** One shows that the world of a seed holds on a server; `npm run prove -- simulate --store postgres` plays them all. */
const PLAYED = process.env["REDRIVE_PROVE"] === "simulate" ? REGRESSIONS : REGRESSIONS.slice(0, 1);

it.each(PLAYED)("the guarantees hold on Postgres for seed %i, which once broke them", async (seed) => {
  const time = { now: 0 };
  const { store, close } = await postgresWorld(inject("postgres18"), time);
  // It is as late on the server as it is in the world of the seed.
  const wrap = (_bare: unknown, clock: { now(): number }) => {
    Object.defineProperty(time, "now", { get: () => clock.now() });
    return { ...store, close };
  };
  const { bad, totals } = await sweep("memory", [seed], { wrap, settings: { runs: false } });
  expect(bad.map(explain).join("\n")).toBe("");
  expect(totals.jobs).toBeGreaterThan(0);
});
