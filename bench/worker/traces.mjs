// What OpenTelemetry spans cost: CPU time per job, enqueued and run, with an SDK and without, in turns.
import { join } from "node:path";
import { playTogether } from "../actor.mjs";
import { against, inScratch, median, row } from "../measure.mjs";

async function cpuPerJob(count, traced) {
  return inScratch(async (folder) => {
    const [figures] = await playTogether(["./actors/traces.mjs", { path: join(folder, "bench.db"), count, traced }]);
    if (figures.completed !== count) throw new Error(`completed ${figures.completed} of ${count}`);
    if (figures.spans !== (traced ? 2 * count : 0)) throw new Error(`exported ${figures.spans} spans`);
    return figures.cpuUs;
  });
}

/** Rows about traces. */
export async function traces({ short, rounds }) {
  const count = short ? 2_000 : 20_000;
  const [off, on] = [[], []];
  for (let round = 0; round < rounds; round++) {
    off.push(await cpuPerJob(count, false));
    on.push(await cpuPerJob(count, true));
  }
  const [without, having] = [median(off), median(on)];
  row("CPU per job without traces, µs", without.middle.toFixed(1));
  row("CPU per job with an OpenTelemetry SDK, µs", having.middle.toFixed(1));
  const times = having.middle / without.middle;
  row("  with traces against without", `${times.toFixed(2)} ×`, against("≤ 1.2 ×", times <= 1.2));
}
