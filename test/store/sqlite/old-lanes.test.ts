// Lanes without a job go from the table of a SQLite file; that no job meets a deleted lane is the matter of conformance.
import { expect, it } from "vitest";
import { inlineStore, reader } from "../../support/database-file.ts";
import { newJob } from "../../support/new-job.ts";
import { end, take } from "../../support/runs.ts";
import { complete, dead } from "../../support/verdicts.ts";

/** Deletion takes several steps. */
const STEPS = 4;

it("lanes are deleted when nothing is left of them, and not before", async () => {
  const { path, store } = await inlineStore();
  const ask = reader(path);
  const tenants = (): unknown[] => ask("select tenant from lane order by tenant").flat();
  const keep = { finishedMs: 0, deadMs: null };
  const prune = async (laneMs: number): Promise<void> => {
    for (let step = 0; step < STEPS; step++)
      await store.prune({ keep, types: [], keyMs: 0, laneMs, limit: 100, isFirst: true });
  };
  await store.enqueue(["kept", "gone"].map((tenant) => newJob({ tenant })));
  for (const job of await take(store)) await end(store, job, job.tenant === "kept" ? dead() : complete());
  await store.enqueue([newJob({ tenant: "waits" })]);
  await prune(60_000);
  expect(tenants()).toEqual(["gone", "kept", "waits"]);
  await prune(0);
  expect(tenants()).toEqual(["kept", "waits"]);
});
