// What upkeep tells of itself: one record per worker and service while it works, and one in all when it has left.
import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import { openRecords, RECORD_CELLS, recordsFrom } from "../../src/upkeep/upkeep-records.ts";

const well = { ms: 3, error: null, waitMs: 1_000 };

describe("records of upkeep", () => {
  it("are left to nobody by workers that leave, however many came and went", async () => {
    const store = createMemoryStore({ clock: () => 1_000 });
    const read = async () => recordsFrom((await store.cells([{ kind: RECORD_CELLS }])).cells);
    for (const id of ["w1", "w2", "w3"]) {
      const records = openRecords({ store, system: { monotonic: () => 0 }, worker: () => id });
      records.note("schedules", well);
      records.note("retention", { ...well, error: "disk full" });
      expect(await read()).toContainEqual({ service: "schedules", worker: id, at: 1_000, ...well });
      await records.end();
    }
    expect(await read()).toEqual([
      { service: "retention", worker: "w3", at: 1_000, ...well, error: "disk full" },
      { service: "schedules", worker: "w3", at: 1_000, ...well },
    ]);
  });
});
