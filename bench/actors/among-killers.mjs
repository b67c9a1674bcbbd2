// A worker process as a supervisor would run it: works until it is asked to end, or is killed by one of its jobs.
import { createSqliteStore } from "../../dist/store/sqlite/index.js";
import { openWorker } from "./open-worker.mjs";

const { path, ...options } = JSON.parse(process.argv[2]);
const store = createSqliteStore({ path });
const worker = openWorker(store, `sqlite:${path}`, options);
process.once("SIGTERM", () => void worker.stop({ withinMs: 2_000 }).then(() => store.close()));
await worker.start();
