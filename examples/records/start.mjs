// Starts main.ts, on Node 20 too.
import { start } from "../kit/start.mjs";

await start(import.meta.url);
