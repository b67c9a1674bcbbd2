// How soon an idle worker begins a job, from the call that enqueues it to the handler: within a process, and across two.
import { join } from "node:path";
import { play, startActor } from "../actor.mjs";
import { against, inScratch, quantile, row } from "../measure.mjs";

function within(count) {
  return inScratch((folder) => play("./actors/serve.mjs", { path: join(folder, "bench.db"), enqueue: count }));
}

function across(count) {
  return inScratch(async (folder) => {
    const path = join(folder, "bench.db");
    const worker = startActor("./actors/serve.mjs", { path });
    await worker.ready;
    worker.say("go");
    await play("./actors/producer.mjs", { path, count });
    worker.say("end");
    return worker.figures;
  });
}

/** Rows about the wait before a run. */
export async function pickUp({ short }) {
  const count = short ? 10 : 300;
  judge("within a process", await within(count), count, {
    p50: Number.POSITIVE_INFINITY,
    p99: 10,
    text: "p99 < 10 ms",
  });
  judge("across processes", await across(count), count, { p50: 5, p99: 20, text: "p50 < 5 ms, p99 < 20 ms" });
}

function judge(name, { pickups }, count, goal) {
  if (pickups.length !== count) throw new Error(`picked up ${pickups.length} of ${count}`);
  const [p50, p99] = [quantile(pickups, 0.5), quantile(pickups, 0.99)];
  const figure = `${p50.toFixed(1)} / ${p99.toFixed(1)} ms`;
  row(`idle pick-up ${name}, p50 / p99 of ${count}`, figure, against(goal.text, p50 < goal.p50 && p99 < goal.p99));
}
