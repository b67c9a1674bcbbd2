// What workers that have nothing to do ask of the server: transactions a second, as the server counts them, each of one
// statement but for upkeep that cleans up. They are given the time to settle first.
import { play, startActor } from "../actor.mjs";
import { against, row, sleep } from "../measure.mjs";
import { REDRIVE } from "./contenders.mjs";
import { inDatabase, statements } from "./database.mjs";

/** What the server has counted for a database. It hears of it from each of its processes within ten seconds. */
async function counted(server, url) {
  const name = new URL(url).pathname.slice(1);
  const [{ n }] = await statements(
    server.url("postgres"),
    `select xact_commit + xact_rollback as n from pg_stat_database where datname = '${name}'`,
  );
  return Number(n);
}

function idling(server, { module, task }, processes, { settleMs, measureMs }) {
  return inDatabase(server, async (url) => {
    await play(module, { ...task, kind: "fill", url, count: 0 });
    const workers = Array.from({ length: processes }, () => startActor(module, { ...task, kind: "serve", url }));
    for (const worker of workers) await worker.ready;
    for (const worker of workers) worker.say("go");
    await sleep(settleMs);
    const [before, began] = [await counted(server, url), performance.now()];
    await sleep(measureMs);
    const perSecond = ((await counted(server, url)) - before) / ((performance.now() - began) / 1000);
    for (const worker of workers) worker.say("end");
    for (const worker of workers) await worker.figures;
    return perSecond;
  });
}

/** Rows about workers that idle. */
export async function idle({ server, short }) {
  const time = short ? { settleMs: 1_000, measureMs: 2_000 } : { settleMs: 60_000, measureMs: 60_000 };
  for (const [processes, most] of [
    [1, 1.5],
    [10, 10],
  ]) {
    const perSecond = await idling(server, REDRIVE, processes, time);
    const who = processes === 1 ? "an idle worker" : `${processes} idle workers`;
    row(`Redrive, ${who}, statements/s`, perSecond.toFixed(2), against(`≤ ${most}`, perSecond <= most));
  }
}
