// How soon an idle worker begins a job, from the call that enqueues it to the handler: within a process, and across two.
import { join } from "node:path";
import { play, startActor } from "../actor.mjs";
import { against, inScratch, quantile, row } from "../measure.mjs";

function within(count) {
  return inScratch((folder) => play("./actors/serve.mjs", { path: join(folder, "bench.db"), enqueue: count }));
}

function across(count, { idleMs = 0, perSecond } = {}) {
  return inScratch(async (folder) => {
    const path = join(folder, "bench.db");
    const worker = startActor("./actors/serve.mjs", { path, idleMs });
    await worker.ready;
    worker.say("go");
    await play("./actors/producer.mjs", { path, count, perSecond });
    worker.say("end");
    return worker.figures;
  });
}

/** Rows about the wait before a run. */
export async function pickUp({ short, rounds }) {
  const count = short ? 10 : 300;
  judge("within a process", await within(count), count, { p99: 10, text: "p99 < 10 ms" });
  judge("across processes", await across(count), count, { p50: 5, p99: 20, text: "p50 < 5 ms, p99 < 20 ms" });
  await steadily({ short, rounds });
}

/** At so many a second, in turns with what the disk alone takes for as many syncs: no program that syncs is faster. */
async function steadily({ short, rounds }) {
  const [count, perSecond, idleMs] = [short ? 10 : 500, 50, short ? 200 : 10_000];
  const [pickups, syncs, idle] = [[], [], []];
  for (let round = 0; round < rounds; round++) {
    const { syncs: took } = await inScratch((folder) =>
      play("./actors/syncs.mjs", { path: join(folder, "bare"), count, perSecond }),
    );
    syncs.push(...took);
    const figures = await across(count, { idleMs, perSecond });
    pickups.push(...figures.pickups);
    idle.push(figures.idle);
  }
  judge(`across, ${perSecond} a second`, { pickups }, rounds * count, { p99: 10, text: "p99 ≤ 10 ms" });
  row(`  bare write and sync, p50 / p99 of ${syncs.length}`, show(syncs), "for information: the disk");
  const most = Math.max(...idle);
  row("  worker that idles, share of a core", `${(most * 100).toFixed(2)} %`, against("≤ 1 %", most <= 0.01));
}

const show = (times) => `${quantile(times, 0.5).toFixed(1)} / ${quantile(times, 0.99).toFixed(1)} ms`;

function judge(name, { pickups }, count, { p50 = Number.POSITIVE_INFINITY, p99, text }) {
  if (pickups.length !== count) throw new Error(`picked up ${pickups.length} of ${count}`);
  const isReached = quantile(pickups, 0.5) < p50 && quantile(pickups, 0.99) < p99;
  row(`idle pick-up ${name}, p50 / p99 of ${count}`, show(pickups), against(text, isReached));
}
