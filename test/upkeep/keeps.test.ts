// The notes of how long types keep their jobs: rewritten once a day while a program of the type lives.
import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/jobs/define-job.ts";
import type { CellChange } from "../../src/store/store.ts";
import { type KnownKeeps, refreshKeeps } from "../../src/upkeep/keeps.ts";

const DAY_MS = 86_400_000;
const now = 100 * DAY_MS;
const jobs = ["a", "b"].map((name) => defineJob(name, { run: async () => undefined }));
const noted = (ageMs: number) => ({ finishedMs: 5, deadMs: 7, at: now - ageMs });

async function rewritten(keeps: KnownKeeps["keeps"]): Promise<readonly CellChange[][]> {
  const written: CellChange[][] = [];
  const setCells = async (changes: readonly CellChange[]) => {
    written.push([...changes]);
    return changes.map(() => true);
  };
  await refreshKeeps({ setCells }, jobs, { keeps, archived: new Map(), now });
  return written;
}

describe("a note", () => {
  it("is rewritten when it is a day old, with the value that it has, also where it is the only one", async () => {
    const keeps = new Map([
      ["a", noted(DAY_MS)],
      ["b", noted(DAY_MS - 1)],
    ]);
    const value = JSON.stringify({ finishedMs: 5, deadMs: 7 });
    expect(await rewritten(keeps)).toMatchObject([[{ name: "a", value }]]);
  });

  it("is written where it is missing, and left alone while it is young", async () => {
    expect((await rewritten(new Map())).flat().map(({ name }) => name)).toEqual(["a", "b"]);
    expect(await rewritten(new Map(["a", "b"].map((type) => [type, noted(1)])))).toEqual([]);
  });
});
