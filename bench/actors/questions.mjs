// Processes beside the measured one, which tell and are told by messages. `hold` claims jobs and waits to be killed; `view`
// asks what a page for people asks, as many viewers as it is told, each once a second while it is told to; `work` drains
// what waits for it, each time it is told to.
import { gatherHealth } from "../../dist/operate/health.js";
import { createPostgresStore } from "../../dist/store/postgres/index.js";
import { createSqliteStore } from "../../dist/store/sqlite/index.js";
import { openWorker } from "./open-worker.mjs";

/** No process of a benchmark lives longer, whatever it waits for. */
const LONGEST_MS = 3_600_000;

const [role, kind, address, count] = process.argv.slice(2);
const open = () => (kind === "sqlite" ? createSqliteStore({ path: address }) : createPostgresStore({ url: address }));
const store = open();
const LOOK = { limit: 50, lookAt: 10_000, payloads: false };
const HOUR_MS = 3_600_000;

/** What a page for people asks. */
const QUESTIONS = {
  count: () => store.count(10_000),
  jobs: () => store.list(LOOK),
  running: () => store.list({ ...LOOK, state: "running" }),
  dead: () => store.list({ ...LOOK, state: "dead" }),
  "of a tenant": () => store.list({ ...LOOK, tenant: "tenant-7" }),
  letters: () => store.deadLetters(LOOK),
  causes: () => store.causes({ limit: 50 }),
  flow: () => store.trend({ from: Date.now() - HOUR_MS, until: Date.now(), stepMs: 60_000 }),
  workers: () => store.workers(),
  health: () => gatherHealth(store),
};

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
}

/** Answers the word `ask` at once, and the word `rest` with the times of every question, once no answer is awaited. */
async function view() {
  const names = Object.keys(QUESTIONS);
  const timers = [];
  const waits = new Set();
  let asked = 0;
  let times = {};
  const ask = async (name) => {
    const began = performance.now();
    await QUESTIONS[name]();
    (times[name] ??= []).push(performance.now() - began);
  };
  const next = () => {
    const waiting = ask(names[asked++ % names.length]).finally(() => waits.delete(waiting));
    waits.add(waiting);
  };
  // Connections, or the thread, and code that V8 has seen before.
  for (const name of names) await ask(name);
  const hear = async (word) => {
    if (word === "ask") {
      times = {};
      for (let viewer = 0; viewer < Number(count); viewer++)
        timers.push(setTimeout(() => timers.push(setInterval(next, 1_000)), (viewer * 1_000) / Number(count)));
      process.send("asking");
      return;
    }
    for (const timer of timers.splice(0)) clearInterval(timer);
    await Promise.all(waits);
    process.send(times);
  };
  process.on("message", (word) => void hear(word));
  process.send("ready");
}

/** Answers every word, when nothing is due any more, with the CPU that this process has used and the times of its claims. */
async function work() {
  let claims = [];
  const timed = {
    ...store,
    async claim(request) {
      const began = performance.now();
      const answer = await store.claim(request);
      claims.push(performance.now() - began);
      return answer;
    },
  };
  const drain = async () => {
    claims = [];
    let completed = 0;
    const worker = openWorker(timed, kind === "sqlite" ? `sqlite:${address}` : address, {}, () => (completed += 1));
    const [cpu, began] = [process.cpuUsage(), performance.now()];
    await worker.drain({ graceMs: 0 });
    const { user, system } = process.cpuUsage(cpu);
    const seconds = (performance.now() - began) / 1_000;
    process.send({ completed, claims, cpuMs: (user + system) / 1_000, seconds });
  };
  process.on("message", () => void drain());
  process.send("ready");
}

await { hold, view, work }[role]();
setTimeout(() => process.exit(1), LONGEST_MS);
process.once("disconnect", () => process.exit(1));
