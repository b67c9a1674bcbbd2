// graphile-worker, which deletes what is completed. `worker` are its settings: none for the library as shipped.
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";
import { contend, inChunks } from "../postgres/contender.mjs";
import { hearStatements } from "../postgres/statements.mjs";

const logger = new Logger(() => () => undefined);

await contend({
  async open({ url, pool, chunk = 1_000, lines = 1 }) {
    const utils = await makeWorkerUtils({ preset: { worker: { connectionString: url, maxPoolSize: pool, logger } } });
    return {
      migrate: () => utils.migrate(),
      add: (input) => utils.addJob("bench", input),
      addMany: (inputs) =>
        inChunks(inputs, chunk, lines, (some) =>
          utils.addJobs(some.map((payload) => ({ identifier: "bench", payload, maxAttempts: 10 }))),
        ),
      close: () => utils.release(),
    };
  },
  async work({ url, worker }, { claiming, run: handle, completed }) {
    hearStatements(pg, (name) => name.startsWith("get_job"), { sent: claiming });
    hearStatements(pg, (name) => name.startsWith("complete_job"), {
      answered: ({ rowCount }) => completed(rowCount),
    });
    const runner = await run({
      taskList: { bench: (input, { job }) => handle(input, job.attempts) },
      noHandleSignals: true,
      preset: { worker: { ...worker, connectionString: url, logger } },
    });
    return () => runner.stop();
  },
});
