// The equal-work loop in a process of its own: the statements of the store on the tables of the store, with their fence
// and rows, on two connections and without a worker, handlers or rows made into jobs. Gives jobs per second.
import pg from "pg";
import { BOTTOM } from "../../dist/store/postgres/floors.js";
import { createPostgresStore } from "../../dist/store/postgres/index.js";
import { settleStatements } from "../../dist/store/postgres/settle-statements.js";
import { claimText } from "../../dist/store/postgres/work.js";
import { realSystem } from "../../dist/system/real.js";
import { actor } from "../actor.mjs";

/** Jobs claimed and settled together, and sets in flight. */
const SET = 500;
const LINES = 2;
const RESULT = '{"ok":true}';
const SCHEMA = "redrive";
/** Places of these columns in what a claim answers. */
const [EPOCH, SEQ] = [2, 8];

/** Registers a worker as a store does; gives what a claim has to name. */
async function prepare(url) {
  const store = createPostgresStore({ url });
  const worker = realSystem.workerId();
  await store.register({ id: worker, leaseMs: 600_000, pid: process.pid, host: "bench", release: null });
  const { version } = await store.control();
  const { lanes } = await store.lanes(null, 1);
  await store.close();
  return { worker, version, lane: lanes[0].lane };
}

await actor(async ({ url, count }, go) => {
  const { worker, version, lane } = await prepare(url);
  const claim = { name: "claim", text: claimText(SCHEMA) };
  const { complete } = settleStatements(SCHEMA, null);
  const pool = new pg.Pool({ connectionString: url, max: LINES, options: "-c plan_cache_mode=force_generic_plan" });
  const ask = async (statement, values) => (await pool.query({ ...statement, values, rowMode: "array" })).rows;
  await Promise.all(Array.from({ length: LINES }, () => ask({ text: "select 1" }, [])));
  await go();
  const began = performance.now();
  let [ticket, completed] = [1, 0];
  const line = async () => {
    for (let spent = []; ; ) {
      const nonce = realSystem.nonce();
      const from = [[BOTTOM.runAt], [BOTTOM.seq]];
      const rows = await ask(claim, [worker, ticket, version, [lane], [SET], SET, nonce, ticket, spent, [1], ...from]);
      if (rows.length === 0) return;
      ticket += SET;
      rows.sort((a, b) => a[SEQ] - b[SEQ]);
      const leases = [[nonce], rows.map((row) => row[SEQ]), rows.map((row) => row[EPOCH]), rows.map(() => 1)];
      const [[, done]] = await ask(complete, [...leases, rows.map(() => RESULT), worker, ticket]);
      completed += done.length;
      spent = [nonce];
    }
  };
  await Promise.all(Array.from({ length: LINES }, line));
  const perSecond = count / ((performance.now() - began) / 1000);
  await pool.end();
  if (completed !== count) throw new Error(`completed ${completed} of ${count}`);
  return { perSecond };
});
