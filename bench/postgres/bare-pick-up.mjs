// The limit of an idle pick-up: the statements of the store, one connection that enqueues and notifies, one that listens and
// one that claims and completes as soon as it hears something; no queue, no worker.
import pg from "pg";
import { insertsOf } from "../../dist/store/postgres/enqueue.js";
import { settleStatements } from "../../dist/store/postgres/settle-statements.js";
import { openWaker, wakeNames } from "../../dist/store/postgres/wake.js";
import { realSystem } from "../../dist/system/real.js";
import { CLAIM, claimed, connected, EPOCH, inserted, PAYLOAD, prepare, SCHEMA, SEQ } from "./bare.mjs";
import { contend } from "./contender.mjs";

const NAMES = wakeNames(SCHEMA);
const MOST = 10;

await contend({
  async open({ url }) {
    const { alike } = insertsOf(SCHEMA, openWaker(NAMES), "enqueue", null);
    await prepare(url);
    const { ask, end } = await connected(url, 1);
    const addMany = (inputs) => ask(alike, inserted(inputs.map((input) => JSON.stringify(input))));
    return { migrate: () => undefined, add: (input) => addMany([input]), addMany: () => undefined, close: end };
  },
  async work({ url }, { run }) {
    const { worker, version } = await prepare(url);
    const { complete } = settleStatements(SCHEMA, null);
    const { ask, end } = await connected(url, 1);
    let [ticket, spent] = [1, []];
    const take = async () => {
      const nonce = realSystem.nonce();
      const rows = await ask(CLAIM, claimed({ worker, version, lane: 0, most: MOST, nonce, ticket, spent }));
      if (rows.length === 0) return;
      ticket += rows.length;
      for (const row of rows) run(JSON.parse(row[PAYLOAD]));
      const leases = [[nonce], rows.map((row) => row[SEQ]), rows.map((row) => row[EPOCH]), rows.map(() => 1)];
      await ask(complete, [...leases, rows.map(() => null), worker, ticket]);
      spent = [nonce];
    };
    const listener = new pg.Client(url);
    await listener.connect();
    listener.on("notification", () => void take());
    await listener.query(`listen ${NAMES.channel}`);
    await listener.query(`select pg_advisory_lock_shared(${NAMES.idle})`);
    return async () => {
      await listener.end();
      await end();
    };
  },
});
