// Processes beside the measured one: `hold` claims jobs and waits to be killed, `view` asks as people do, as many as it is
// told, each once a second.
import { createPostgresStore } from "../../dist/store/postgres/index.js";
import { createSqliteStore } from "../../dist/store/sqlite/index.js";

const [role, kind, address, count] = process.argv.slice(2);
const store = kind === "sqlite" ? createSqliteStore({ path: address }) : createPostgresStore({ url: address });

async function hold() {
  const worker = `held-${process.pid}`;
  await store.register({ id: worker, leaseMs: 1_000, pid: process.pid, host: "bench", release: null });
  const { lanes } = await store.lanes(null, 10_000);
  const { version } = await store.control();
  const limit = Number(count);
  const quotas = lanes.map(({ lane }) => ({ lane, limit }));
  const request = { worker, quotas, limit, nonce: worker, control: version, ticket: 1, startedThrough: 0 };
  const { jobs } = await store.claim(request);
  process.send(jobs.length);
  // Until it is killed, or left alone.
  setTimeout(() => process.exit(1), 60_000);
}

function view() {
  const questions = [
    () => store.count(10_000),
    () => store.list({ limit: 50, lookAt: 10_000 }),
    () => store.list({ limit: 50, state: "dead", lookAt: 10_000 }),
    () => store.deadLetters({ limit: 50, lookAt: 10_000 }),
    () => store.list({ limit: 50, tenant: "tenant-7", lookAt: 10_000 }),
  ];
  let asked = 0;
  for (let viewer = 0; viewer < Number(count); viewer++)
    setTimeout(
      () => setInterval(() => void questions[asked++ % questions.length]().catch(() => undefined), 1_000),
      (viewer * 1_000) / Number(count),
    );
  process.send("ready");
  setTimeout(() => process.exit(1), 120_000);
}

if (role === "hold") await hold();
else view();
process.once("disconnect", () => process.exit(1));
