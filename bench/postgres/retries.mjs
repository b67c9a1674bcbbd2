// How long it takes until jobs that fail once have all completed, each tried again as soon as its library allows: at once,
// except with graphile-worker, which waits e seconds (2.7) before a second try and cannot be told otherwise.
import { median, row } from "../measure.mjs";
import { best, inTurn, ratio, rows, without } from "./beside.mjs";
import { cpuOf, drained, REDRIVE, secondsOf } from "./contenders.mjs";
import { limitOf } from "./equal-work.mjs";

/** Rows about jobs that fail once: few, which a worker that has just started gets done, and many. */
export async function retries(settings) {
  for (const count of settings.short ? [500] : [5_000, 50_000]) await failingOnce(count, settings);
}

async function failingOnce(count, { server, rounds, peers, missing }) {
  const fast = peers.filter(({ shipped }) => !shipped);
  const waits = new Map();
  const [limits, costs] = [[], new Map()];
  const values = await inTurn([REDRIVE, ...fast], rounds, async (contender) => {
    if (contender === REDRIVE) limits.push(count / (await limitOf(server, count, { failOnce: true })));
    const figures = await drained(server, contender, { count, failOnce: true });
    const [{ failedLast, retriedFirst }] = figures;
    costs.set(contender.name, [...(costs.get(contender.name) ?? []), cpuOf(figures)]);
    waits.set(contender.name, Math.max(0, retriedFirst - failedLast) / 1000);
    // For those that do only some of the jobs, as long as they would take for all.
    return secondsOf(figures) / contender.share;
  });
  const figure = ({ middle, spread }) => `${middle.toFixed(2)} s ± ${Math.round(spread * 50)} %`;
  row(`equal-work loop, ${count} jobs that fail once`, figure(median(limits)));
  rows(values, `${count} jobs that fail once`, figure, (name) =>
    waits.get(name) > 0.5 ? `of it ${waits.get(name).toFixed(1)} s idle until retries fall due` : "",
  );
  // What no waiting explains: on a busy machine these say more than the times.
  for (const [name, all] of costs) {
    const middle = (of) => median(all.map((cost) => cost[of])).middle.toFixed(0);
    row(`  ${name}, CPU per job, worker and server`, `${middle("worker")} + ${middle("server")} µs`);
  }
  if (missing) return without(missing);
  const peer = best(values, fast, Math.min);
  const own = median(values.get(REDRIVE.name)).middle;
  for (const name of new Set([peer.name, "pg-boss, best"])) ratio(median(values.get(name)).middle / own, name, 2);
}
