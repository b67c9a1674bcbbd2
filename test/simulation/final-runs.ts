// The redrive runs that a store holds at the end of a simulation, beside a real count of their letters.
import type { DeadLetter } from "../../src/core/job.ts";
import { PLAN_CELLS, planFrom } from "../../src/core/recovery/plan.ts";
import type { RedriveRun } from "../../src/core/recovery/run.ts";
import type { Store } from "../../src/store/store.ts";
import { readAllRuns } from "../../src/upkeep/run-cells.ts";
import type { FinalRun } from "../support/history/event.ts";
import { RUN } from "./operator.ts";

/** Every run, and the one by which operators send letters themselves. */
export async function finalRuns(store: Store, letters: readonly DeadLetter[], isSteady: boolean): Promise<FinalRun[]> {
  const { runs } = await readAllRuns(store);
  const { cells } = await store.cells([{ kind: PLAN_CELLS }]);
  const plannedAt = new Map(cells.map(({ name, value }) => [name, planFrom(value)?.at ?? 0]));
  const records = new Map(runs.map(({ run }) => [run.id, run]));
  const all = await store.redriveCounts([RUN, ...records.keys()]);
  return all.map(({ id, sent, good, same, other, cancelled, gone, recalled }) => {
    const open = letters.filter(({ redrive, outcome }) => redrive === id && outcome === null);
    const left = sent - good - same - other - cancelled - gone - recalled;
    const run = records.get(id);
    const missed = run && isSteady ? missedBy(run, plannedAt.get(run.plan) ?? 0, letters) : [];
    return { id, sent, recalled, left, pending: open.length, unheard: open.filter(isOver).length, missed };
  });
}

function isOver({ job }: DeadLetter): boolean {
  return job.state !== "queued" && job.state !== "running";
}

/** Letters that died before the plan of a run which is complete. Those with a key may have been superseded; recalled ones died anew. */
function missedBy({ state, selection }: RedriveRun, plannedAt: number, letters: readonly DeadLetter[]): string[] {
  if (state !== "completed") return [];
  const recalled = new Set(letters.flatMap(({ job, outcome }) => (outcome === "recalled" ? [job.id] : [])));
  return letters
    .filter(({ job, redrivenAt, diedAt }) => {
      const isOurs = redrivenAt === null && job.type === selection.type && job.key === null && diedAt < plannedAt;
      return isOurs && !recalled.has(job.id);
    })
    .map(({ job, generation }) => `${job.id} (${generation})`);
}
