// The SQL function `enqueue` beside bare inserts of the same rows: what a job needs in `job` and `waiting`, in one prepared
// statement with its lane at hand, without any check, key, count or wake-up.
import pg from "pg";
import { createPostgresStore } from "../../dist/store/postgres/index.js";
import { realSystem } from "../../dist/system/real.js";
import { against, median, rate, row } from "../measure.mjs";
import { SCHEMA } from "./bare.mjs";
import { inDatabase } from "./database.mjs";

const PAYLOAD = `{"customer":"c-4711","url":"https://example.com/orders/123456","note":"${"x".repeat(30)}"}`;
/** The one that the goal is about. */
const JUDGED = "redrive.enqueue()";
const GOAL = 0.5;
const WARM = 200;

const BARE = {
  name: "bare",
  text: `with new as (
    insert into ${SCHEMA}.job (id, lane, run_at, due_at, created_at, updated_at, version, payload, limited, max_attempts, max_crashes)
    values ($1, $2, $3, $3, $3, $3, 1, $4, false, 10, 3) returning lane, run_at, seq)
    insert into ${SCHEMA}.waiting (lane, run_at, seq) select lane, run_at, seq from new`,
};
const FUNCTION = { name: "function", text: `select ${SCHEMA}.enqueue('bench', $1)` };
const KEYED = { name: "keyed", text: `select ${SCHEMA}.enqueue('bench', $1, key => $2)` };

/** What a caller sends, by the lane of the type. */
const SENT = {
  "bare inserts": (lane) => ({ ...BARE, values: [realSystem.jobId(), lane, Date.now(), PAYLOAD] }),
  "redrive.enqueue()": () => ({ ...FUNCTION, values: [PAYLOAD] }),
  "redrive.enqueue() with a key": () => ({ ...KEYED, values: [PAYLOAD, realSystem.jobId()] }),
};

/** Jobs per second of callers with a connection each, in one transaction each or in one for every job. */
function speed(server, send, { count, callers, together }) {
  return inDatabase(server, async (url) => {
    const store = createPostgresStore({ url });
    await store.migrate();
    await store.close();
    const clients = await Promise.all(
      Array.from({ length: callers }, async () => {
        const client = new pg.Client(url);
        await client.connect();
        return client;
      }),
    );
    try {
      await clients[0].query(FUNCTION.text, [PAYLOAD]);
      const [{ base: lane }] = (await clients[0].query(`select base from ${SCHEMA}.lane`)).rows;
      const call = async (client, jobs) => {
        if (together) await client.query("begin");
        for (let job = 0; job < jobs; job++) await client.query(send(lane));
        if (together) await client.query("commit");
      };
      for (const client of clients) await call(client, WARM / callers);
      const began = performance.now();
      await Promise.all(clients.map((client) => call(client, count / callers)));
      return count / ((performance.now() - began) / 1_000);
    } finally {
      for (const client of clients) await client.end();
    }
  });
}

/** Rows about the function, each kind of caller beside the bare inserts of the same run. */
export async function sqlEnqueueing({ server, short, rounds }) {
  const count = short ? 400 : 8_000;
  const kinds = {
    "8 callers, a transaction a job": { count, callers: 8, together: false },
    "1 caller, all in a transaction": { count, callers: 1, together: true },
  };
  for (const [kind, task] of Object.entries(kinds)) {
    const speeds = new Map(Object.keys(SENT).map((name) => [name, []]));
    for (let round = 0; round < rounds; round++)
      for (const [name, send] of Object.entries(SENT)) speeds.get(name).push(await speed(server, send, task));
    for (const [name, values] of speeds) row(`${name}, ${kind}, jobs/s`, rate(median(values)));
    const bare = median(speeds.get("bare inserts")).middle;
    for (const [name, values] of [...speeds].slice(1)) {
      const share = median(values).middle / bare;
      const goal = name === JUDGED ? against(`≥ ${GOAL} × the bare inserts`, share >= GOAL) : "";
      row(`  ${name} against bare inserts`, `${share.toFixed(2)} ×`, goal);
    }
  }
}
