// pg-boss, which keeps what is completed. `worker` are its settings of `work`, `notify` wakes idle workers.
import pg from "pg";
import { PgBoss } from "pg-boss";
import { contend, inChunks } from "../postgres/contender.mjs";
import { hearStatements } from "../postgres/statements.mjs";

const QUEUE = "bench";

async function start({ url, pool = 10, notify = false }) {
  const boss = new PgBoss({ connectionString: url, max: pool, useListenNotify: notify });
  boss.on("error", (error) => process.stderr.write(`pg-boss: ${error.message}\n`));
  await boss.start();
  return boss;
}

await contend({
  async open(task) {
    const { chunk = 1_000, lines = 1, notify = false } = task;
    const boss = await start(task);
    return {
      migrate: () => boss.createQueue(QUEUE, { notify, retryLimit: 10, retryDelay: 0, retryBackoff: false }),
      add: (input) => boss.send(QUEUE, input),
      addMany: (inputs) =>
        inChunks(inputs, chunk, lines, (some) =>
          boss.insert(
            QUEUE,
            some.map((data) => ({ data })),
          ),
        ),
      close: () => boss.stop({ graceful: false }),
    };
  },
  async work(task, { claiming, run, completed }) {
    const isCompletion = (_name, text) => text.includes("completed_on = ") && text.includes("state = 'completed'");
    hearStatements(pg, (_name, text) => text.includes("SKIP LOCKED"), { sent: claiming });
    hearStatements(pg, isCompletion, { answered: ({ rows }) => completed(Number(rows[0].count)) });
    const boss = await start(task);
    // A batch fails as a whole, which is faster here than one verdict for each job (`perJobResults`).
    const options = { ...task.worker, includeMetadata: task.failOnce ?? false };
    await boss.work(QUEUE, options, async (jobs) => {
      for (const { data, retryCount = 0 } of jobs) run(data, retryCount + 1);
    });
    return () => boss.stop({ graceful: true, timeout: 2_000 });
  },
});
