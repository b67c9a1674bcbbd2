// Growth on Postgres: how fast claim and settle are with nothing kept, with millions of finished jobs, with a million
// scheduled ones, and while a client leaves a transaction open so that nothing dead can be cleaned up; and what pruning in
// chunks leaves of the tables. Prints a table, and writes it with a plot for the docs unless it is a short run.
//   node bench/postgres-growth.mjs [--short]
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import pg from "pg";
import { createPostgresStore } from "../dist/store/postgres/index.js";
import { realSystem } from "../dist/system/real.js";
import { fill, inScratch, quantile } from "./measure.mjs";
import { inDatabase, statements } from "./postgres/database.mjs";
import { startPostgres } from "./postgres/server.mjs";
import { page, plot } from "./postgres/growth-page.mjs";

const { values } = parseArgs({ options: { short: { type: "boolean" } } });
const { short = false } = values;
const SET = 500;
const JOBS = short ? 2_000 : 20_000;
const MILLION = short ? 20_000 : 1_000_000;
const PASSING = short ? 4_000 : 200_000;
const DOCS = fileURLToPath(new URL("../docs/stores/", import.meta.url));

/** Claims and settles everything due, one set after the other; how many jobs a second, and the middle of each call. */
async function drain(store, jobs) {
  const worker = realSystem.workerId();
  await store.register({ id: worker, leaseMs: 600_000, pid: process.pid, host: "bench", release: null });
  const { version: control } = await store.control();
  const took = { look: [], claim: [], settle: [] };
  const timed = async (name, act) => {
    const began = performance.now();
    const answer = await act();
    took[name].push(performance.now() - began);
    return answer;
  };
  const began = performance.now();
  for (let settled = 0, ticket = 1; settled < jobs; ticket += SET) {
    const { lanes } = await timed("look", () => store.lanes(null, 100));
    const quotas = lanes.map(({ lane }) => ({ lane, limit: SET }));
    const request = { worker, quotas, limit: SET, nonce: realSystem.nonce(), control, ticket, startedThrough: ticket };
    const { jobs: claimed } = await timed("claim", () => store.claim(request));
    const verdict = { kind: "complete", result: '{"ok":true}' };
    const settlements = claimed.map(({ id, epoch, nonce }) => ({ id, epoch, nonce, verdict }));
    await timed("settle", () => store.settle({ settlements, worker, startedThrough: ticket + SET }));
    settled += claimed.length;
  }
  const rate = jobs / ((performance.now() - began) / 1_000);
  await store.leave(worker);
  const middle = (name) => quantile(took[name], 0.5);
  return { rate, lookMs: middle("look"), claimMs: middle("claim"), settleMs: middle("settle") };
}

/** Writes finished jobs as if they had run two days ago, with the notes of those that ended together. */
async function addFinished(url, count) {
  const ago = "(extract(epoch from now()) * 1000)::bigint - 172800000";
  await statements(
    url,
    `with done as (
      insert into redrive.job (id, lane, state, run_at, due_at, created_at, updated_at, started_at, finished_at, keep_ms,
        keep_dead_ms, expires_at, epoch, max_attempts, max_crashes, version, worker, payload, result)
      select gen_random_uuid()::text, (select min(base) from redrive.lane), 'completed', t, t, t, t, t, t, 86400000,
        604800000, t + 86400000, 1, 10, 3, 1, 'w',
        '{"customer":"c-4711","url":"https://example.com/orders/123456"}', '{"ok":true}'
      from (select ${ago} + n / ${SET} as t from generate_series(1, ${count}) n) times
      returning seq, expires_at)
    insert into redrive.ended (state, at, seqs) select 'completed', expires_at, array_agg(seq order by seq) from done group by expires_at`,
    "analyze",
    "checkpoint",
  );
}

async function megabytes(url) {
  const [row] = await statements(
    url,
    `select sum(pg_total_relation_size(c.oid))::bigint as bytes from pg_class c
     where relnamespace = 'redrive'::regnamespace and relkind = 'r'`,
  );
  return Math.round(Number(row.bytes) / 1_048_576);
}

/** Deletes what is over in chunks, as a worker's upkeep does, until so many are gone. */
async function prune(store, most) {
  const began = performance.now();
  const chunks = [];
  const retention = { keep: { finishedMs: 86_400_000, deadMs: null }, types: [], keyMs: 86_400_000 };
  let pruned = 0;
  for (let isFirst = true, more = true; more && pruned < most; isFirst = false) {
    const at = performance.now();
    const answer = await store.prune({ ...retention, limit: 1_000, isFirst });
    chunks.push(performance.now() - at);
    pruned += answer.completed;
    more = answer.more;
  }
  return { pruned, chunkMs: quantile(chunks, 0.5), seconds: (performance.now() - began) / 1_000 };
}

async function measure(url) {
  const store = createPostgresStore({ url });
  const rows = [];
  const note = async (name, figures) => {
    const row = { name, ...figures, megabytes: await megabytes(url) };
    rows.push(row);
    const ms = (value) => (value === undefined ? "" : value.toFixed(1));
    const rate = figures.rate === undefined ? "" : Math.round(figures.rate);
    console.log([name, rate, ms(row.lookMs), ms(row.claimMs), ms(row.settleMs), row.megabytes].join(" | "));
  };
  const some = async (name) => {
    await fill(store, JOBS);
    await note(name, await drain(store, JOBS));
  };
  try {
    console.log("with | jobs/s | look ms | claim ms | settle ms | MB");
    await store.migrate();
    await fill(store, SET * 4);
    await drain(store, SET * 4);
    await some("nothing kept");
    await addFinished(url, MILLION);
    await some(`${MILLION} finished jobs`);
    await addFinished(url, MILLION * 2);
    await some(`${MILLION * 3} finished jobs`);
    for (let n = 0; n < MILLION; n += 100_000)
      await fill(store, Math.min(100_000, MILLION - n), { delayMs: 86_400_000 });
    await some(`… and ${MILLION} scheduled`);
    const pruned = await prune(store, MILLION);
    await note(`after pruning ${pruned.pruned} in chunks of 1000`, {});
    await statements(url, "vacuum redrive.job, redrive.ended");
    await addFinished(url, pruned.pruned);
    await note("as many finished again, in the same room", {});
    const other = new pg.Client(url);
    await other.connect();
    await other.query("begin isolation level repeatable read");
    await other.query("select count(*) from redrive.control");
    for (let passed = 0; passed < PASSING; passed += PASSING / 5) {
      await fill(store, PASSING / 5);
      await note(`a transaction open for ${passed + PASSING / 5} jobs`, await drain(store, PASSING / 5));
    }
    await other.query("rollback");
    await other.end();
    await statements(url, "vacuum");
    await some("… and after it ended");
    return { rows, pruned };
  } finally {
    await store.close();
  }
}

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
await inScratch(async (folder) => {
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const server = await startPostgres(folder);
  try {
    const found = await inDatabase(server, measure);
    console.log(`pruned ${found.pruned.pruned} in ${found.pruned.seconds.toFixed(1)} s`);
    if (short) return;
    writeFileSync(join(DOCS, "postgres-growth.svg"), plot(found.rows));
    writeFileSync(join(DOCS, "postgres-growth.md"), page(found));
  } finally {
    await server.stop();
  }
});
