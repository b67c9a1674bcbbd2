// A process that starts a Postgres server, says where, freezes it when it is told anything, and lives until it is killed.
import { startPostgres } from "./postgres-server.ts";

const PATIENCE_MS = 120_000;

const server = await startPostgres();
process.stdout.write(`${server.url()}\n`);
process.stdin.once("data", () => {
  server.freeze(true);
  process.stdout.write("frozen\n");
});
setTimeout(() => void server.stop().then(() => process.exit(4)), PATIENCE_MS);
