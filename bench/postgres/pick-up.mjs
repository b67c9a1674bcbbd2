// How soon an idle worker begins a job that another process enqueues, from the call to the handler.
import { play, startActor } from "../actor.mjs";
import { against, quantile, row } from "../measure.mjs";
import { inTurn, without } from "./beside.mjs";
import { REDRIVE } from "./contenders.mjs";
import { inDatabase } from "./database.mjs";

function pickups(server, { module, task: given, waiting }, count) {
  const task = { ...given, ...waiting };
  return inDatabase(server, async (url) => {
    await play(module, { ...task, kind: "fill", url, count: 0 });
    const worker = startActor(module, { ...task, kind: "serve", url });
    await worker.ready;
    worker.say("go");
    await play(module, { ...task, kind: "produce", url, count });
    worker.say("end");
    const figures = await worker.figures;
    if (figures.pickups.length !== count) throw new Error(`${module} picked up ${figures.pickups.length} of ${count}`);
    return figures.pickups;
  });
}

/** The statements of the store and nothing around them. */
const BARE = { name: "equal-work loop", module: "./postgres/bare-pick-up.mjs" };

/** Rows about the wait before a run. */
export async function pickUp({ server, short, rounds, peers, missing }) {
  const count = short ? 10 : 200;
  const values = await inTurn([REDRIVE, BARE, ...peers], rounds, (contender) => pickups(server, contender, count));
  const times = new Map([...values].map(([name, all]) => [name, [0.5, 0.99].map((at) => quantile(all.flat(), at))]));
  for (const [name, [p50, p99]] of times)
    row(`${name}, idle pick-up, p50 / p99 of ${count * rounds}`, `${p50.toFixed(1)} / ${p99.toFixed(1)} ms`);
  if (missing) return without(missing);
  const [ours, , ...theirs] = [...times.values()];
  const least = [0, 1].map((at) => Math.min(...theirs.map((each) => each[at])));
  const figure = ours.map((ms, at) => `${(ms / least[at]).toFixed(2)} ×`).join(" / ");
  row(
    "  Redrive against the soonest",
    figure,
    against(
      "≤ 1 × / ≤ 1 ×",
      ours.every((ms, at) => ms <= least[at]),
    ),
  );
}
