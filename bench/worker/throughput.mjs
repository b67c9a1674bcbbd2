// How fast one worker process, and two, get no-op jobs done, beside the bare loop and the peers; and what a million jobs
// scheduled for later cost.
import { join } from "node:path";
import { playTogether } from "../actor.mjs";
import { equalWork } from "../equal-work.mjs";
import { against, fill, inScratch, median, rate, row, withStore } from "../measure.mjs";
import { beeDrain, plainjobDrain } from "../peers.mjs";

/** Drains what waits in the file with some worker processes; gives jobs per second. */
export async function drainRate(path, count, processes = 1) {
  const parts = Array.from({ length: processes }, () => ["./actors/drain.mjs", { path }]);
  return perSecond(await playTogether(...parts), count);
}

function perSecond(figures, count) {
  const completed = figures.reduce((sum, figure) => sum + figure.completed, 0);
  if (completed !== count) throw new Error(`completed ${completed} of ${count}`);
  const began = Math.min(...figures.map((figure) => figure.began));
  return count / ((Math.max(...figures.map((figure) => figure.ended)) - began) / 1000);
}

async function filledAnd(count, work) {
  return inScratch(async (folder) => {
    const path = join(folder, "bench.db");
    await withStore(path, (store) => fill(store, count));
    return work(path);
  });
}

/** Rows about processing. */
export async function throughput({ short, rounds, missing }) {
  const count = short ? 3_000 : 60_000;
  const got = { limit: [], one: [], two: [], plainjob: [], bee: [] };
  for (let round = 0; round < rounds; round++) {
    got.limit.push(await filledAnd(count, (path) => equalWork(path, count)));
    got.one.push(await filledAnd(count, (path) => drainRate(path, count)));
    if (!missing.plainjob) got.plainjob.push(perSecond([await plainjobDrain(count / 3)], count / 3));
    if (!missing.bee) got.bee.push(perSecond([await beeDrain(count / 3)], count / 3));
    got.two.push(await filledAnd(count, (path) => drainRate(path, count, 2)));
  }
  const { limit, one, two, plainjob, bee } = Object.fromEntries(
    Object.entries(got).map(([name, values]) => [name, values.length > 0 ? median(values) : null]),
  );
  row("equal-work loop, jobs/s", rate(limit));
  row("Redrive, 1 worker process, jobs/s", rate(one));
  const share = one.middle / limit.middle;
  row("  share of the equal-work limit", `${Math.round(share * 100)} %`, against("≥ 60 %", share >= 0.6));
  row("plainjob as shipped, 1 worker process, jobs/s", plainjob ? rate(plainjob) : "–", missing.plainjob ?? "");
  if (plainjob) {
    const times = one.middle / plainjob.middle;
    row("  Redrive against plainjob", `${times.toFixed(1)} ×`, against("≥ 6 ×", times >= 6));
  }
  row("bee-queue on Redis, 1 worker process, jobs/s", bee ? rate(bee) : "–", missing.bee ?? "for information");
  row("Redrive, 2 worker processes, jobs/s", rate(two), "for information");
}

/** Row about jobs that are not due yet; both files are used in turn, so that they share what the machine does. */
export async function scheduled({ short, rounds }) {
  const [count, later] = short ? [3_000, 20_000] : [60_000, 1_000_000];
  await inScratch((folder) =>
    inScratch(async (other) => {
      const [alone, crowded] = [join(folder, "bench.db"), join(other, "bench.db")];
      await withStore(crowded, (store) => fill(store, later, { delayMs: 86_400_000 }));
      const rates = { alone: [], crowded: [] };
      for (let round = 0; round < rounds; round++) {
        for (const [name, path] of Object.entries({ alone, crowded })) {
          await withStore(path, (store) => fill(store, count));
          rates[name].push(await drainRate(path, count));
        }
      }
      const with_ = median(rates.crowded);
      const share = with_.middle / median(rates.alone).middle;
      row(`Redrive with ${later} scheduled for later, jobs/s`, rate(with_));
      row("  share of the rate without them", `${Math.round(share * 100)} %`, against("≥ 90 %", share >= 0.9));
    }),
  );
}
