// What `npm run prove` runs: as many seeds as the environment asks for, or the whole throughput proof of the checker.
// Not named as a test, so that the test command does not run it.
import { describe, expect, it } from "vitest";
import { readingSpeed } from "./reading-speed.ts";
import { STORES, type StoreName } from "./simulate.ts";
import { explain, summary, sweep } from "./sweep.ts";

const asked = process.env["REDRIVE_PROVE"] ?? "";
const stores = STORES.filter((store) => (process.env["REDRIVE_PROVE_STORE"] ?? store) === store);
const seeds = Number(process.env["REDRIVE_PROVE_SEEDS"] ?? 200);
const first = Number(process.env["REDRIVE_PROVE_SEED"] ?? 1);
const HOURS = 24 * 3_600_000;

describe.skipIf(asked !== "simulate")("npm run prove -- simulate", () => {
  for (const store of stores) it(`holds on ${store}`, { timeout: HOURS }, () => prove(store));
});

describe.skipIf(asked !== "checker")("npm run prove -- checker", () => {
  it("reads ten million events within a minute", { timeout: HOURS }, () => {
    const { events, seconds, report } = readingSpeed(10_000_000);
    process.stdout.write(`checker ${events} events, ${report.jobs} jobs, ${seconds.toFixed(1)} s\n`);
    expect(report.violations).toEqual([]);
    expect(seconds).toBeLessThan(60);
  });
});

async function prove(store: StoreName): Promise<void> {
  const found = await sweep(
    store,
    Array.from({ length: seeds }, (_, i) => first + i),
  );
  for (const bad of found.bad) process.stdout.write(`${explain(bad)}\n`);
  process.stdout.write(`${summary(store, found)}\n`);
  expect(found.bad.length, "seeds that broke the guarantees").toBe(0);
}
