// How fast one worker process, and two, get no-op jobs done, beside the peers and the equal-work limit: keeping results,
// which is Redrive's default, and deleting what is completed.
import { against, median, rate, row } from "../measure.mjs";
import { best, inTurn, ratio, rows, without } from "./beside.mjs";
import { cpuOf, drained, REDRIVE, secondsOf } from "./contenders.mjs";
import { limitOf } from "./equal-work.mjs";

const KEEPING = { ...REDRIVE, limit: {} };
const DELETING = {
  ...REDRIVE,
  name: "Redrive, deleting",
  task: { forget: true },
  limit: { forget: true },
  left: "select count(*)::int as left from redrive.job",
};

async function withProcesses(processes, settings) {
  const { server, short, rounds, peers, missing } = settings;
  // The first thousands are slow for everybody, while V8 learns; what is wanted is the rate of a worker that goes on.
  const count = short ? 2_000 : 120_000;
  const limits = new Map([KEEPING, DELETING].map(({ name }) => [name, []]));
  const costs = new Map();
  let left = 0;
  const values = await inTurn([KEEPING, DELETING, ...peers], rounds, async (contender) => {
    if (contender.limit)
      limits.get(contender.name).push(await limitOf(server, count, { processes, ...contender.limit }));
    const figures = await drained(server, contender, { count, processes });
    left = Math.max(left, figures.left ?? 0);
    costs.set(contender.name, [...(costs.get(contender.name) ?? []), cpuOf(figures)]);
    return figures.reduce((sum, { completed }) => sum + completed, 0) / secondsOf(figures);
  });
  const title = `${processes} worker process${processes > 1 ? "es" : ""}, jobs/s`;
  rows(values, title, rate, (name) =>
    name === DELETING.name && left > 0 ? `MISSED: nothing stays; of ${count} jobs ${left} were still there` : "",
  );
  for (const [name, all] of limits) {
    const [limit, reached] = [median(all), median(values.get(name)).middle];
    const share = reached / limit.middle;
    row(`equal-work loop of ${name}, jobs/s`, rate(limit));
    const goal = processes === 1 && name === KEEPING.name ? against("≥ 70 %", share >= 0.7) : "";
    row("  share of the equal-work limit", `${Math.round(share * 100)} %`, goal);
  }
  const peer = missing ? null : best(values, peers);
  for (const name of [...limits.keys(), ...(peer ? [peer.name] : [])]) {
    const middle = (of) => median(costs.get(name).map((cost) => cost[of])).middle.toFixed(0);
    row(`  ${name}, CPU per job, worker and server`, `${middle("worker")} + ${middle("server")} µs`);
  }
  if (!peer) return without(missing);
  const [kept, forgot] = [KEEPING, DELETING].map(({ name }) => median(values.get(name)).middle);
  ratio(kept / peer.middle, `${peer.name}; keeping`, 1.2, 1.5);
  if (left === 0) ratio(forgot / peer.middle, `${peer.name}; deleting`, 1.5, 2);
}

/** Rows about processing. */
export async function throughput(settings) {
  await withProcesses(1, settings);
  await withProcesses(2, settings);
}
