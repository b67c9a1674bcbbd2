// What `redrive …` in this folder uses, and the example itself. An hour is a second or two here; `preset: "runs"` alone
// means: stuck after 1 h, tried again 4 h later, given up after 4 retries.
import type { PolicyOptions } from "redrive";

/** How long runs may take, when they are tried again, when they are given up. */
export const defaults: PolicyOptions = {
  preset: "runs",
  stuck: { after: "1500ms", retryAfter: "3s", limit: 4 },
};

export default {
  store: "sqlite:./data/redrive.db",
  jobs: "./jobs.ts",
  defaults,
  worker: { concurrency: 20, lease: "4s", heartbeat: "500ms", abortGrace: "1s" },
};
