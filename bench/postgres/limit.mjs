// The equal-work loops in a process of their own: the statements of the store on the tables of the store, with their fence
// and rows, on two connections and without a worker, handlers or rows made into jobs. `work` claims and completes, keeping
// what is completed or deleting it, with `failOnce` after a failure; `bulk` enqueues and gives jobs per second.
import { insertsOf } from "../../dist/store/postgres/enqueue.js";
import { settleStatements } from "../../dist/store/postgres/settle-statements.js";
import { realSystem } from "../../dist/system/real.js";
import { actor, stamp } from "../actor.mjs";
import { CLAIM, claimed, connected, EPOCH, inserted, prepare, SCHEMA, SEQ } from "./bare.mjs";

/** Jobs claimed, settled or written together, and sets in flight. */
const SET = 500;
const LINES = 2;
const RESULT = '{"ok":true}';
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
  alike: false,
};

/** Takes sets from a lane until it is empty, and settles each with a statement and more columns than those of the lease. */
async function drain(ask, { worker, version, tickets }, lane, statement, more) {
  let settled = 0;
  const line = async () => {
    for (let spent = []; ; ) {
      const nonce = realSystem.nonce();
      const rows = await ask(CLAIM, claimed({ worker, version, lane, most: SET, nonce, ticket: tickets.next, spent }));
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
  const { ask, end } = await connected(url, LINES);
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
  const { alike } = insertsOf(SCHEMA, { notify: "null::text" }, "enqueue", null);
  const { ask, end } = await connected(url, LINES);
  const sets = Array.from({ length: Math.ceil(count / SET) }, () => inserted(Array(SET).fill(payload)));
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
