// The equal-work loops in a process of their own: the statements of the store on the tables of the store, with their fence
// and rows, on two connections and without a worker, handlers or rows made into jobs. `work` claims and completes, keeping
// what is completed or deleting it, with `failOnce` after a failure; `bulk` enqueues and gives jobs per second.
import pg from "pg";
import { insertsOf } from "../../dist/store/postgres/enqueue.js";
import { BOTTOM } from "../../dist/store/postgres/floors.js";
import { createPostgresStore } from "../../dist/store/postgres/index.js";
import { settleStatements } from "../../dist/store/postgres/settle-statements.js";
import { claimText } from "../../dist/store/postgres/work.js";
import { realSystem } from "../../dist/system/real.js";
import { actor, stamp } from "../actor.mjs";

/** Jobs claimed, settled or written together, and sets in flight. */
const SET = 500;
const LINES = 2;
const RESULT = '{"ok":true}';
const SCHEMA = "redrive";
const MOST_LANES = 10;
/** Places of these columns in what a claim answers. */
const [EPOCH, SEQ] = [2, 8];
/** What a worker sends of `new Error("connect ECONNRESET")`. */
const FAILURE = {
  attempts: 1,
  crashes: 0,
  failure: '{"class":"network","severity":"warning","fingerprint":"8a6b1c0de2f34a57"}',
  class: "network",
  name: "Error",
  message: "connect ECONNRESET",
  stack: `Error: connect ECONNRESET\n    at run (file:///srv/app/jobs/bench.js:41:13)\n    at callHandler (${"x".repeat(60)})`,
  fingerprint: "8a6b1c0de2f34a57",
};

/** Registers a worker as a store does; gives what a claim has to name. */
async function prepare(url) {
  const store = createPostgresStore({ url });
  const worker = realSystem.workerId();
  await store.register({ id: worker, leaseMs: 600_000, pid: process.pid, host: "bench", release: null });
  const { version } = await store.control();
  const { lanes } = await store.lanes(null, MOST_LANES);
  await store.close();
  return { worker, version, lane: lanes[0]?.lane ?? 0 };
}

/** Asks on some connections that are open already. */
async function connected(url) {
  const pool = new pg.Pool({ connectionString: url, max: LINES, options: "-c plan_cache_mode=force_generic_plan" });
  const ask = async (statement, values) => (await pool.query({ ...statement, values, rowMode: "array" })).rows;
  await Promise.all(Array.from({ length: LINES }, () => ask({ text: "select 1" }, [])));
  return { ask, end: () => pool.end() };
}

/** Takes sets from a lane until it is empty, and settles each with a statement and more columns than those of the lease. */
async function drain(ask, { worker, version, tickets }, lane, statement, more) {
  const claim = { name: "claim", text: claimText(SCHEMA) };
  let settled = 0;
  const line = async () => {
    for (let spent = []; ; ) {
      const nonce = realSystem.nonce();
      const [ticket, from] = [tickets.next, [[BOTTOM.runAt], [BOTTOM.seq], null]];
      const rows = await ask(claim, [worker, ticket, version, [lane], [SET], SET, nonce, ticket, spent, [1], ...from]);
      if (rows.length === 0) return;
      tickets.next += SET;
      rows.sort((a, b) => a[SEQ] - b[SEQ]);
      const leases = [[nonce], rows.map((row) => row[SEQ]), rows.map((row) => row[EPOCH]), rows.map(() => 1)];
      const columns = more.map((value) => rows.map(() => value));
      const [[, done]] = await ask(statement, [...leases, ...columns, worker, tickets.next]);
      settled += done.length;
      spent = [nonce];
    }
  };
  await Promise.all(Array.from({ length: LINES }, line));
  return settled;
}

async function work({ url, failOnce, forget }, go) {
  const { lane, ...parts } = await prepare(url);
  const { complete, forget: deleted, retry } = settleStatements(SCHEMA, null);
  const { ask, end } = await connected(url);
  const by = { ...parts, tickets: { next: 1 } };
  await go();
  const began = stamp();
  if (failOnce) await drain(ask, by, lane, retry, [0, 1, null, ...Object.values(FAILURE)]);
  const from = failOnce ? lane + 1 : lane;
  const completed = await (forget ? drain(ask, by, from, deleted, []) : drain(ask, by, from, complete, [RESULT]));
  const ended = stamp();
  await end();
  return { began, ended, completed };
}

async function bulk({ url, count, payload }, go) {
  await prepare(url);
  const { alike } = insertsOf(SCHEMA, { notify: "null::text" }, "enqueue", "");
  const { ask, end } = await connected(url);
  const settings = [0, null, 0, 10, 3, null, null, 1, true, null, null];
  const set = () => [
    Array.from({ length: SET }, () => realSystem.jobId()),
    Array(SET).fill(payload),
    Array(SET).fill(null),
  ];
  const sets = Array.from({ length: Math.ceil(count / SET) }, () => [...set(), ...settings, SET]);
  await go();
  const began = performance.now();
  const line = async () => {
    for (let values; (values = sets.pop()); ) await ask(alike, values);
  };
  await Promise.all(Array.from({ length: LINES }, line));
  const perSecond = count / ((performance.now() - began) / 1000);
  await end();
  return { perSecond };
}

await actor((task, go) => (task.kind === "bulk" ? bulk(task, go) : work(task, go)));
