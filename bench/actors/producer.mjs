// A process that only enqueues, one job at a time: after each answer, or so many a second.
import { createSqliteStore } from "../../dist/store/sqlite/index.js";
import { actor } from "../actor.mjs";
import { produce, produceSteadily } from "./produce.mjs";

await actor(async ({ path, count, perSecond }, go) => {
  const store = createSqliteStore({ path });
  await store.control();
  await go();
  if (perSecond === undefined) await produce(store, count);
  else await produceSteadily(store, count, perSecond);
  await store.close();
  return {};
});
