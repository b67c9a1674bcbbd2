// BullMQ on its Postgres backend. `worker` are the settings of its worker; what is completed stays, or is removed.
import { createPostgresBackend, Queue, runMigrations, Worker } from "bullmq";
import pg from "pg";
import { contend, inChunks } from "../postgres/contender.mjs";

const NAME = "bench";

await contend({
  async open({ url, pool = 10, chunk = 1_000, lines = 1, remove = false, failOnce = false }) {
    const connection = { connectionString: url, max: pool };
    const opts = { removeOnComplete: remove, attempts: failOnce ? 2 : 1 };
    await migrate(url);
    const queue = new Queue(NAME, { connection, defaultJobOptions: opts }, createPostgresBackend);
    await queue.waitUntilReady();
    return {
      migrate: async () => undefined,
      add: (data) => queue.add(NAME, data),
      addMany: (inputs) =>
        inChunks(inputs, chunk, lines, (some) => queue.addBulk(some.map((data) => ({ name: NAME, data })))),
      close: () => queue.close(),
    };
  },
  async work({ url, pool = 10, worker }, { run: handle, completed }) {
    const connection = { connectionString: url, max: pool };
    const run = async ({ data, attemptsMade }) => handle(data, attemptsMade + 1);
    const running = new Worker(NAME, run, { ...worker, connection }, createPostgresBackend);
    running.on("completed", () => completed(1));
    running.on("error", (error) => process.stderr.write(`bullmq: ${error.message}\n`));
    await running.waitUntilReady();
    return () => running.close(true);
  },
});

async function migrate(url) {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await runMigrations(client);
  } finally {
    await client.end();
  }
}
