// Records that are fed again after their jobs were deleted: they are known by their key, and no result is left to tell.
import { describe, expect, it } from "vitest";
import { defineJob, permanent } from "../../src/index.ts";
import { KINDS, openRedrive } from "../redrive/kinds.ts";

type Order = { readonly id: string };

describe.each(KINDS)("processRecords of records whose jobs were deleted, on %s", (kind) => {
  const brief = defineJob("brief", {
    keep: { finished: 0 },
    run: ({ id }: Order) => (id === "bad" ? permanent("no such order") : id),
  });

  async function feeding() {
    const redrive = await openRedrive(kind, { jobs: [brief] });
    const told: string[] = [];
    const feed = (ids: readonly string[], onResult: (done: { id: string }) => void = ({ id }) => void told.push(id)) =>
      redrive.processRecords(
        brief,
        ids.map((id) => ({ id })),
        { id: ({ id }) => id, worker: { poll: 20 }, grace: 0, onResult },
      );
    return { redrive, told, feed };
  }

  it("says that their results are missing", async () => {
    const { told, feed } = await feeding();
    expect(await feed(["a", "b"])).toMatchObject({ enqueued: 2, completed: 2, missing: 0 });
    expect(await feed(["a", "c", "b"])).toMatchObject({ enqueued: 1, known: 2, completed: 1, missing: 2 });
    expect(told).toEqual(["a", "b", "c"]);
  });

  it("misses none that this call has told, nor one that died", async () => {
    const { told, feed } = await feeding();
    const ids = Array.from({ length: 600 }, (_, at) => `r${at % 150}`);
    expect(await feed([...ids, "bad", "bad"])).toMatchObject({ enqueued: 151, completed: 150, dead: 1, missing: 0 });
    expect(told.length).toBe(150);
    expect(await feed(["bad"])).toMatchObject({ known: 1, missing: 0 });
  });
});
