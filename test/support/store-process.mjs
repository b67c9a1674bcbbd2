// A process of its own that uses the store as a user's program does. Its arguments are the built module of the store,
// what to do, and the database file; what it has to say goes to its parent.
const PATIENCE_MS = 20_000;
const [module, role, path, ...rest] = process.argv.slice(2);
const { createSqliteStore } = await import(module);
const { createInlineSqliteStore } = await import(new URL("./inline.js", module).href);
const store = createSqliteStore({ path, ...(role === "write" && { sync: rest[0] }) });
const tell = (message) => new Promise((resolve) => process.send(message, resolve));

const newJob = (id) => ({
  id,
  type: "thumbnail",
  queue: "default",
  service: null,
  tenant: null,
  group: null,
  groupConcurrency: null,
  priority: 0,
  key: null,
  digest: null,
  payload: JSON.stringify({ id }),
  version: 1,
  unique: "key",
  delayMs: 0,
  runAt: null,
  trace: null,
  maxAttempts: 10,
  maxCrashes: 3,
  deadlineMs: null,
  stuckMs: null,
  stuckRetryMs: null,
  stuckLimit: null,
  limited: true,
  keepFinishedMs: null,
  keepDeadMs: null,
});

const roles = {
  /** Opens the file when told to, together with others, and writes one job. */
  async open() {
    await tell("ready");
    await new Promise((resolve) => process.once("message", resolve));
    await store.migrate();
    await store.enqueue([newJob(`open-${process.pid}`)]);
    await tell({ counted: (await store.count()).queued });
    await store.close();
  },

  /** Enqueues so many jobs in calls of five, several calls under way at a time. */
  async enqueue() {
    const count = Number(rest[0]);
    const created = [];
    for (let from = 0; from < count; from += 25) {
      const calls = [0, 5, 10, 15, 20].map((at) => {
        const ids = Array.from({ length: 5 }, (_, n) => `p${process.pid}-${from + at + n}`);
        return store.enqueue(ids.map(newJob));
      });
      for (const answer of (await Promise.all(calls)).flat()) if (answer.kind === "created") created.push(answer.id);
    }
    await store.close();
    await tell({ created });
  },

  /** Claims and completes until so many jobs are completed in all; says which were its own. */
  async work() {
    const total = Number(rest[0]);
    const worker = `w${process.pid}`;
    const until = Date.now() + PATIENCE_MS;
    const done = [];
    await store.register({ id: worker, leaseMs: 60_000, pid: process.pid, host: "here", release: null });
    for (let round = 0; Date.now() < until; round++) {
      const { lanes } = await store.lanes(null, 100);
      const control = (await store.control()).version;
      const quotas = lanes.map(({ lane }) => ({ lane, limit: 20 }));
      const nonce = `${worker}-${round}`;
      const ticket = round * 20 + 1;
      const { jobs } = await store.claim({ worker, quotas, limit: 20, nonce, control, ticket, startedThrough: ticket });
      if (jobs.length === 0) {
        if ((await store.count()).completed >= total) break;
        // Other processes write; there is no event to wait for.
        await new Promise((resolve) => setTimeout(resolve, 5));
        continue;
      }
      const settlements = jobs.map(({ id, epoch }) => ({
        id,
        epoch,
        nonce,
        verdict: { kind: "complete", result: id },
      }));
      const { stale } = await store.settle({ settlements, worker, startedThrough: ticket + 20 });
      if (stale.length > 0) throw new Error(`${stale.length} leases were stale.`);
      done.push(...jobs.map(({ id }) => id));
    }
    await store.close();
    await tell({ done });
  },

  /** Writes until it is killed and tells every id once it was acknowledged. */
  async write() {
    for (let n = 0; n < 100_000; n++) {
      const [answer] = await store.enqueue([newJob(`k${process.pid}-${n}`)]);
      await tell({ acknowledged: answer.id });
    }
  },

  /** Uses the store and then does nothing more, without closing it. */
  async idle() {
    await store.enqueue([newJob("idle")]);
    console.log("enqueued");
  },

  /** Asks for something that cannot travel to the store thread, and then for something that can. */
  async unsendable() {
    const reason = () => "a function cannot be copied to another thread";
    const refused = store.pause({ kind: "queue", name: "default" }, { forMs: null, reason }).then(
      () => "accepted",
      (error) => error.code,
    );
    const enqueued = store.enqueue([newJob("sendable")]).then(([answer]) => answer.kind);
    const patience = new Promise((resolve) => setTimeout(resolve, 60_000, "no answer").unref());
    const answers = [await Promise.race([refused, patience]), await Promise.race([enqueued, patience])];
    console.log(JSON.stringify(answers));
  },

  /** Uses a file that its user may only read; started as root, it becomes somebody else first. */
  async readonly() {
    await import("better-sqlite3").then(({ default: Database }) => new Database(":memory:").close());
    if (process.getuid() === 0) process.setuid(65_534);
    try {
      const inline = createInlineSqliteStore({ path, clock: Date.now });
      await inline.enqueue([newJob("never")]);
      console.log(JSON.stringify({ code: "accepted" }));
    } catch ({ code, message }) {
      console.log(JSON.stringify({ code, message }));
    }
  },
};

await roles[role]();
if (process.connected) process.disconnect();
