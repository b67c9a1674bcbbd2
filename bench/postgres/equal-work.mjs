// The equal-work limit on Postgres: what a run could reach if nothing but the statements of the store cost anything.
// Always measured in the same run as what it limits.
import { play } from "../actor.mjs";
import { REDRIVE } from "./contenders.mjs";
import { inDatabase } from "./database.mjs";

/** Fills a new database and has the bare loop empty it; gives jobs per second. */
export function limitOf(server, count) {
  return inDatabase(server, async (url) => {
    await play(REDRIVE.module, { kind: "fill", url, count });
    return (await play("./postgres/limit.mjs", { url, count })).perSecond;
  });
}
