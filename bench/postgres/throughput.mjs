// How fast one worker process, and two, get no-op jobs done, beside the peers and the equal-work limit: keeping results,
// which is Redrive's default, and deleting what is completed.
import { against, median, rate, row } from "../measure.mjs";
import { best, inTurn, ratio, rows, without } from "./beside.mjs";
import { drained, REDRIVE, secondsOf } from "./contenders.mjs";
import { limitOf } from "./equal-work.mjs";

const FORGETTING = {
  ...REDRIVE,
  name: "Redrive, deleting",
  task: { forget: true },
  left: "select count(*)::int as left from redrive.job",
};

async function withProcesses(processes, settings) {
  const { server, short, rounds, peers, missing } = settings;
  const count = short ? 2_000 : 40_000;
  const limits = [];
  let left = 0;
  const values = await inTurn([REDRIVE, FORGETTING, ...peers], rounds, async (contender) => {
    if (processes === 1 && contender === REDRIVE) limits.push(await limitOf(server, count));
    const figures = await drained(server, contender, { count, processes });
    left = Math.max(left, figures.left ?? 0);
    return figures.reduce((sum, { completed }) => sum + completed, 0) / secondsOf(figures);
  });
  const title = `${processes} worker process${processes > 1 ? "es" : ""}, jobs/s`;
  if (processes === 1) row("equal-work loop, jobs/s", rate(median(limits)));
  rows(values, title, rate, (name) =>
    name === FORGETTING.name && left > 0 ? `MISSED: nothing stays; of ${count} jobs ${left} were still there` : "",
  );
  const [kept, forgot] = [REDRIVE, FORGETTING].map(({ name }) => median(values.get(name)).middle);
  if (processes === 1) {
    const share = kept / median(limits).middle;
    row("  share of the equal-work limit", `${Math.round(share * 100)} %`, against("≥ 70 %", share >= 0.7));
  }
  if (missing) return without(missing);
  const peer = best(values, peers);
  ratio(kept / peer.middle, `${peer.name}; keeping`, 1.2, 1.5);
  if (left === 0) ratio(forgot / peer.middle, `${peer.name}; deleting`, 1.5, 2);
}

/** Rows about processing. */
export async function throughput(settings) {
  await withProcesses(1, settings);
  await withProcesses(2, settings);
}
