// Whether the memory of a worker process grows with what waits, and whether it goes on growing with what was done. In
// between it does grow: V8's young generations and SQLite's page cache (64 MB at most) fill up with use, whatever waits,
// and are full by the first million.
import { join } from "node:path";
import { play } from "../actor.mjs";
import { against, fill, inScratch, row, withStore } from "../measure.mjs";

function drained(count, marks) {
  return inScratch(async (folder) => {
    const path = join(folder, "bench.db");
    await withStore(path, (store) => fill(store, count));
    return play("./actors/drain.mjs", { path, marks });
  });
}

/** Rows about memory. */
export async function memory({ short }) {
  const [few, many] = short ? [1_000, 10_000] : [10_000, 2_000_000];
  const small = await drained(few, [few]);
  const large = await drained(many, [few, many / 2, many]);
  const judge = (name, before, after) => {
    const flat = after <= before * 1.1;
    row(name, `${Math.round(before)} → ${Math.round(after)} MB`, against("≤ + 10 %", flat));
  };
  judge(`memory after ${few} jobs, ${few} → ${many} queued`, small.memoryMb[few], large.memoryMb[few]);
  judge(`memory after ${many / 2} → ${many} jobs`, large.memoryMb[many / 2], large.memoryMb[many]);
  const peaks = `${Math.round(small.peakMb)} → ${Math.round(large.peakMb)} MB`;
  row(`  peak while all ${few} → ${many} are drained`, peaks, "for information");
}
