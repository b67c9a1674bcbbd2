// A process that only enqueues, one job at a time.
import { createSqliteStore } from "../../dist/store/sqlite/index.js";
import { actor } from "../actor.mjs";
import { produce } from "./produce.mjs";

await actor(async ({ path, count }, go) => {
  const store = createSqliteStore({ path });
  await store.control();
  await go();
  await produce(store, count);
  await store.close();
  return {};
});
