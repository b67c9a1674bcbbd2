// How fast single jobs get in: a hundred callers that each wait for their own, and one that waits after each.
import { join } from "node:path";
import { play } from "../actor.mjs";
import { against, inScratch, median, rate, row } from "../measure.mjs";
import { plainjobEnqueue } from "../peers.mjs";

function redriveEnqueue(callers, count) {
  return inScratch(async (folder) => {
    const path = join(folder, "bench.db");
    return (await play("./actors/enqueue.mjs", { path, callers, count })).perSecond;
  });
}

async function sideBySide(callers, count, { rounds, missing }) {
  const [ours, theirs] = [[], []];
  for (let round = 0; round < rounds; round++) {
    ours.push(await redriveEnqueue(callers, count));
    if (!missing.plainjob) theirs.push(await plainjobEnqueue(callers, count));
  }
  return { ours: median(ours), theirs: theirs.length > 0 ? median(theirs) : null };
}

/** Rows about enqueueing. */
export async function enqueueing(settings) {
  const { short, missing } = settings;
  const many = await sideBySide(100, short ? 5_000 : 50_000, settings);
  row("Redrive, enqueue, 100 callers, jobs/s", rate(many.ours));
  row("plainjob, enqueue, 100 callers, jobs/s", many.theirs ? rate(many.theirs) : "–", missing.plainjob ?? "");
  if (many.theirs) {
    const times = many.ours.middle / many.theirs.middle;
    row("  Redrive against plainjob", `${times.toFixed(1)} ×`, against("≥ 3 ×", times >= 3));
  }
  const single = await sideBySide(1, short ? 300 : 3_000, settings);
  row("Redrive, enqueue, one after the other, jobs/s", rate(single.ours), "for information; every job on disk");
  const note = missing.plainjob ?? "for information; written, not on disk (NORMAL)";
  row("plainjob, enqueue, one after the other, jobs/s", single.theirs ? rate(single.theirs) : "–", note);
}
