// How long it takes until jobs that fail once and are tried again at once have all completed, beside bee-queue.
import { join } from "node:path";
import { play } from "../actor.mjs";
import { against, fill, inScratch, median, row, withStore } from "../measure.mjs";
import { beeDrain } from "../peers.mjs";

async function redriveSeconds(count) {
  return inScratch(async (folder) => {
    const path = join(folder, "bench.db");
    await withStore(path, (store) => fill(store, count, { type: "flaky", maxAttempts: 2 }));
    return seconds(await play("./actors/drain.mjs", { path }), count);
  });
}

function seconds({ began, ended, completed }, count) {
  if (completed !== count) throw new Error(`completed ${completed} of ${count}`);
  return (ended - began) / 1000;
}

/** Rows about jobs that fail once. */
export async function retries({ short, rounds, missing }) {
  const count = short ? 500 : 5_000;
  const [ours, theirs] = [[], []];
  for (let round = 0; round < rounds; round++) {
    ours.push(await redriveSeconds(count));
    if (!missing.bee) theirs.push(seconds(await beeDrain(count, true), count));
  }
  const [mine, bee] = [median(ours), theirs.length > 0 ? median(theirs) : null];
  const figure = ({ middle, spread }) => `${middle.toFixed(2)} s ± ${Math.round(spread * 50)} %`;
  row(`Redrive, ${count} jobs that fail once`, figure(mine), against("< 1.0 s", mine.middle < 1));
  row(`bee-queue, ${count} jobs that fail once`, bee ? figure(bee) : "–", missing.bee ?? "");
  if (bee) {
    const times = bee.middle / mine.middle;
    row("  Redrive against bee-queue", `${times.toFixed(1)} × as fast`, against("faster", times > 1));
  }
}
