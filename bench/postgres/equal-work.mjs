// The equal-work limits on Postgres: what a run could reach if nothing but the statements of the store cost anything.
// Always measured in the same run as what they limit.
import { play } from "../actor.mjs";
import { INPUT } from "./contender.mjs";
import { drainedAgain, REDRIVE, secondsOf } from "./contenders.mjs";
import { inDatabase } from "./database.mjs";

const LIMIT = "./postgres/limit.mjs";

/** Fills a new database and has bare loops empty it, as `task` says; gives jobs per second. */
export function limitOf(server, count, { processes = 1, ...task } = {}) {
  return inDatabase(server, async (url) => {
    await play(REDRIVE.module, { kind: "fill", url, count });
    const figures = await drainedAgain(url, { module: LIMIT }, { ...task, kind: "work", count, processes });
    return count / secondsOf(figures);
  });
}

/** Has the bare loop fill a new database; gives jobs per second. */
export function bulkLimitOf(server, count) {
  return inDatabase(server, async (url) => {
    await play(REDRIVE.module, { kind: "fill", url, count: 0 });
    return (await play(LIMIT, { kind: "bulk", url, count, payload: JSON.stringify(INPUT) })).perSecond;
  });
}
