// How fast jobs get in: a hundred callers that each wait for their own job, and many jobs given at once.
import { median, rate, row } from "../measure.mjs";
import { best, inTurn, ratio, rows, without } from "./beside.mjs";
import { enqueueRate, REDRIVE } from "./contenders.mjs";
import { bulkLimitOf } from "./equal-work.mjs";

/** Rows about enqueueing. */
export async function enqueueing({ server, short, rounds, peers, missing }) {
  const producers = peers.filter(({ shipped }) => !shipped);
  const table = async (title, kind, task, goal) => {
    const values = await inTurn([REDRIVE, ...producers], rounds, (contender) => {
      // Single writes of the peers take a while; a tenth says as much.
      const fewer = kind === "enqueue" && contender !== REDRIVE ? { ...contender, share: 0.05 } : contender;
      return enqueueRate(server, fewer, kind, task);
    });
    rows(values, title, rate);
    if (missing) return without(missing);
    const peer = best(values, producers);
    ratio(median(values.get(REDRIVE.name)).middle / peer.middle, peer.name, goal);
  };
  await table("100 callers, jobs/s", "enqueue", { count: short ? 2_000 : 30_000, callers: 100 }, 10);
  const count = short ? 4_000 : 60_000;
  const limits = [];
  for (let round = 0; round < rounds; round++) limits.push(await bulkLimitOf(server, count));
  row("equal-work loop, bulk, jobs/s", rate(median(limits)));
  await table("bulk, jobs/s", "bulk", { count }, 2);
}
