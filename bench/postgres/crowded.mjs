// What a million jobs scheduled for later, and many whose service is paused, cost those that can run. Two databases, one
// crowded and one not, are filled and drained in turn, so that they share what the machine does.
import { createPostgresStore } from "../../dist/store/postgres/index.js";
import { play } from "../actor.mjs";
import { against, fill, median, rate, row } from "../measure.mjs";
import { drainedAgain, REDRIVE, secondsOf } from "./contenders.mjs";
import { inDatabase, writtenOut } from "./database.mjs";

const LINES = 4;

async function crowd(url, later, parked) {
  const store = createPostgresStore({ url });
  try {
    await store.migrate();
    await store.pause({ kind: "service", name: "down" }, { forMs: null, reason: "bench" });
    const lines = (count, overrides) =>
      Promise.all(Array.from({ length: LINES }, () => fill(store, count / LINES, overrides)));
    await lines(later, { delayMs: 86_400_000 });
    await lines(parked, { service: "down" });
  } finally {
    await store.close();
  }
}

async function refilled(url, count) {
  await play(REDRIVE.module, { kind: "fill", url, count });
  return count / secondsOf(await drainedAgain(url, REDRIVE, { count, processes: 1 }));
}

/** Rows about jobs that wait for something else. */
export async function crowded({ server, short, rounds }) {
  const [count, later, parked] = short ? [2_000, 20_000, 4_000] : [40_000, 1_000_000, 120_000];
  await inDatabase(server, (alone) =>
    inDatabase(server, async (among) => {
      await crowd(among, later, parked);
      await writtenOut(among);
      const rates = { alone: [], among: [] };
      for (let round = 0; round < rounds; round++) {
        rates.alone.push(await refilled(alone, count));
        rates.among.push(await refilled(among, count));
      }
      const [without, between] = [median(rates.alone), median(rates.among)];
      const share = between.middle / without.middle;
      row(`Redrive with ${later} for later and ${parked} parked, jobs/s`, rate(between));
      row("  share of the rate without them", `${Math.round(share * 100)} %`, against("≥ 90 %", share >= 0.9));
    }),
  );
}
