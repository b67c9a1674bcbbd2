// How fast jobs get in: a hundred callers that each wait for their own job, one caller that waits after each, and one
// call with many.
import { join } from "node:path";
import { play } from "../actor.mjs";
import { bareInsert } from "../equal-work.mjs";
import { against, fill, inScratch, median, rate, row, withStore } from "../measure.mjs";
import { plainjobBulk, plainjobEnqueue } from "../peers.mjs";

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

function redriveBulk(count, settings = "") {
  return inScratch(async (folder) => {
    const path = `${join(folder, "bench.db")}${settings}`;
    return (await play("./actors/bulk.mjs", { path, count })).perSecond;
  });
}

function bareBulk(count, sharing) {
  return inScratch(async (folder) => {
    const [filled, empty] = [join(folder, "filled.db"), join(folder, "empty.db")];
    await withStore(filled, (store) => fill(store, count));
    await withStore(empty, (store) => store.control());
    return bareInsert(filled, empty, { sharing });
  });
}

/** Rows about many jobs in one call. */
export async function bulk({ short, rounds, missing }) {
  const count = short ? 5_000 : 200_000;
  const [ours, bare, sharing, normal, theirs] = [[], [], [], [], []];
  for (let round = 0; round < rounds; round++) {
    ours.push(await redriveBulk(count));
    normal.push(await redriveBulk(count, "?sync=normal"));
    bare.push(await bareBulk(count, false));
    sharing.push(await bareBulk(count, true));
    if (!missing.plainjob) theirs.push(await plainjobBulk(count));
  }
  const [own, limit] = [median(ours), median(bare)];
  row("Redrive, bulk enqueue, jobs/s", rate(own));
  row("bare insert of the same rows, jobs/s", rate(limit));
  const share = own.middle / limit.middle;
  row("  share of the bare insert", `${(share * 100).toFixed(0)} %`, against("≥ 75 %", share >= 0.75));
  row("bare insert that binds once what rows share, jobs/s", rate(median(sharing)), "for information");
  row("Redrive, bulk enqueue with sync=normal, jobs/s", rate(median(normal)), "as durable as plainjob");
  row("plainjob, bulk enqueue, jobs/s", theirs.length > 0 ? rate(median(theirs)) : "–", missing.plainjob ?? "NORMAL");
  if (theirs.length === 0) return;
  const beside = (name, { middle }) => {
    const times = middle / median(theirs).middle;
    row(`  ${name} against plainjob`, `${times.toFixed(2)} ×`, against("≥ 0.6 ×", times >= 0.6));
  };
  beside("Redrive", own);
  beside("Redrive with sync=normal", median(normal));
}
