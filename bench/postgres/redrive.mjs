// Redrive as a contender, through its public face and with default settings; `forget` deletes what is completed.
import pg from "pg";
import { immediate } from "../../dist/core/backoff.js";
import { defineJob } from "../../dist/jobs/define-job.js";
import { createRedrive } from "../../dist/redrive.js";
import { contend } from "./contender.mjs";
import { hearStatements } from "./statements.mjs";

const jobType = (handle, forget) =>
  defineJob("bench", {
    backoff: immediate(),
    ...(forget ? { keep: { finished: 0 } } : {}),
    run(input, { attempt }) {
      handle(input, attempt);
      return { ok: true };
    },
  });

const open = (url, handle, forget) => createRedrive({ store: url, jobs: [jobType(handle, forget)], log: "error" });

await contend({
  async open({ url }) {
    const redrive = await open(url, () => undefined, false);
    return {
      migrate: () => redrive.store.migrate(),
      add: (input) => redrive.enqueue("bench", input),
      addMany: (inputs) => redrive.enqueueMany("bench", inputs),
      close: () => redrive.close(),
    };
  },
  async work({ url, forget = false, worker: options }, { claiming, run, completed }) {
    hearStatements(pg, (name) => name === "claim", { sent: claiming });
    const redrive = await open(url, run, forget);
    redrive.on("job.completed", () => completed(1));
    const worker = redrive.worker(options);
    await worker.start();
    return async () => {
      await worker.stop({ within: "2s" });
      await redrive.close();
    };
  },
});
