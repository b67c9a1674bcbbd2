// The library and the SQL function are two ways into one store: the same inputs get the same answers, and leave the same
// rows. Between the inputs workers take and end jobs, alike on both sides, so that keys are held by jobs of every state.
// `npm run prove -- doors` sends ten thousand.
import { expect, inject, it } from "vitest";
import type { ClaimedJob, Store } from "../../../src/store/store.ts";
import { createDice, type Dice } from "../../simulation/dice.ts";
import { byLibrary, bySql, drawCall, written } from "../../support/doors.ts";
import { openQueue } from "../../support/postgres-queue.ts";
import { end, take } from "../../support/runs.ts";
import { cancel, complete, dead } from "../../support/verdicts.ts";

const asked = process.env["REDRIVE_PROVE"] === "doors";
const INPUTS = Number(process.env["REDRIVE_PROVE_INPUTS"] ?? 200);
const seed = Number(process.env["REDRIVE_PROVE_SEED"] ?? 1);
/** Inputs between two moves of the workers. */
const BETWEEN = 12;

/** What a worker does to both stores: takes what is due, ends some of it, forgets some. */
async function move(dice: Dice, stores: readonly Store[], running: Map<string, ClaimedJob[]>): Promise<void> {
  // Which job of a group is next is a matter of milliseconds where its lanes differ.
  const only = ({ group }: { readonly group: string | null }): boolean => group === null;
  // Until a look finds nothing: one after a slow look begins where that one ended, and only an empty one is made in full.
  for (const store of stores)
    for (
      let runs = await take(store, undefined, { only });
      runs.length > 0;
      runs = await take(store, undefined, { only })
    )
      for (const run of runs) running.set(run.id, [...(running.get(run.id) ?? []), run]);
  const verdict = dice.pick([complete, dead, cancel]);
  const ended: string[] = [];
  for (const [id, runs] of [...running].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    expect(runs, id).toHaveLength(stores.length);
    if (dice.chance(0.4)) continue;
    for (const [at, store] of stores.entries()) await end(store, runs[at] as ClaimedJob, verdict());
    running.delete(id);
    ended.push(id);
  }
  const [gone] = ended;
  if (gone !== undefined && dice.chance(0.3)) for (const store of stores) await store.remove([gone]);
}

it(`both ways in give the same answers to ${INPUTS} inputs, and write the same`, {
  timeout: asked ? 3_600_000 : 60_000,
}, async () => {
  const [one, two] = [await openQueue(inject("postgres18")), await openQueue(inject("postgres18"))];
  const dice = createDice(seed, "doors");
  const running = new Map<string, ClaimedJob[]>();
  const seen = new Map<string, number>();
  for (let number = 0; number < INPUTS; number++) {
    const call = drawCall(dice, number);
    const answer = await byLibrary(one, call);
    expect(await bySql(two, call), JSON.stringify(call)).toEqual(answer);
    const kind = "code" in answer ? answer.code : `${answer.duplicate} ${answer.replaced} ${answer.state}`;
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
    if (number % BETWEEN === BETWEEN - 1) await move(dice, [one.store, two.store], running);
  }
  expect(await written(two)).toEqual(await written(one));
  await one.redrive.close();
  const flow = "select type, sum(enqueued)::int as n from @.flow group by 1 order by 1";
  expect(await two.sql(flow)).toEqual(await one.sql(flow));
  if (asked)
    console.log(`doors: ${INPUTS} inputs, seed ${seed}: ${[...seen].map((each) => each.join(" ")).join(", ")}`);
  for (const kind of ["true false running", "false true queued", "false false queued", "conflict", "invalid_argument"])
    expect(seen.get(kind), kind).toBeGreaterThan(0);
});
