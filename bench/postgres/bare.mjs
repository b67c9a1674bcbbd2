// The statements of the store as the bare loops send them: on connections of their own, with the values that the store would
// send, and without any of its code around them.
import pg from "pg";
import { BOTTOM } from "../../dist/store/postgres/floors.js";
import { createPostgresStore } from "../../dist/store/postgres/index.js";
import { PLANS } from "../../dist/store/postgres/dependencies.js";
import { claimText } from "../../dist/store/postgres/work.js";
import { PRESETS } from "../../dist/core/policy.js";
import { termValues } from "../../dist/store/columns.js";
import { realSystem } from "../../dist/system/real.js";
import { statements } from "./database.mjs";

/** The schema that jobs are in. */
export const SCHEMA = "redrive";
/** Takes jobs. */
export const CLAIM = { name: "claim", text: claimText(SCHEMA) };
/** Places of these columns in what a claim answers. */
export const [PAYLOAD, EPOCH, SEQ] = [1, 2, 8];
const MOST_LANES = 10;

/** Registers a worker as a store does; gives what a claim has to name. */
export async function prepare(url) {
  const store = createPostgresStore({ url });
  const worker = realSystem.workerId();
  await store.register({ id: worker, leaseMs: 600_000, pid: process.pid, host: "bench", release: null });
  const { version } = await store.control();
  const { lanes } = await store.lanes(null, MOST_LANES);
  await store.close();
  // What is inserted here goes into the first lane, and an insert looks whether its lane is there.
  const lane = `insert into ${SCHEMA}.lane (base, type, queue, priority, used_at) values (0, 'bench', 'default', 0, 0)`;
  await statements(url, `${lane} on conflict do nothing`);
  return { worker, version, lane: lanes[0]?.lane ?? 0 };
}

/** Asks on some connections that are open already. */
export async function connected(url, lines) {
  const pool = new pg.Pool({ connectionString: url, max: lines, options: PLANS });
  const ask = async (statement, values) => (await pool.query({ ...statement, values, rowMode: "array" })).rows;
  await Promise.all(Array.from({ length: lines }, () => ask({ text: "select 1" }, [])));
  return { ask, end: () => pool.end() };
}

/** The values of a claim from one lane. */
export function claimed({ worker, version, lane, most, nonce, ticket, spent }) {
  const from = [[BOTTOM.runAt], [BOTTOM.seq], null];
  return [worker, ticket, version, [lane], [most], most, nonce, ticket, spent, [1], ...from];
}

/** The values that insert jobs of these payloads. */
export function inserted(payloads) {
  const settings = [0, null, 0, 1, true, null, ...termValues(PRESETS.default)];
  return [payloads.map(() => realSystem.jobId()), payloads, payloads.map(() => null), ...settings, payloads.length];
}
