// How long the questions of people take on a store with many dead letters of 40 causes: what `dlq causes`, health and a
// page ask. Fills a store with dead jobs by their real verbs, folds the counts as upkeep does, and prints the time of each
// question, the middle and the worst of several.
//   npm run bench -- causes [--letters 200000] [--only sqlite|postgres] [--short]
import { join } from "node:path";
import { parseArgs } from "node:util";
import { triageCauses } from "../dist/operate/triage.js";
import { assemble } from "../dist/redrive.js";
import { createPostgresStore } from "../dist/store/postgres/index.js";
import { realSystem } from "../dist/system/real.js";
import { inScratch, newJob, quantile, withStore } from "./measure.mjs";
import { inDatabase } from "./postgres/database.mjs";
import { startPostgres } from "./postgres/server.mjs";

const { values } = parseArgs({
  options: {
    letters: { type: "string" },
    only: { type: "string" },
    "no-peers": { type: "boolean" },
    short: { type: "boolean" },
  },
});
const LETTERS = Number(values.letters ?? (values.short ? 2_000 : 200_000));
const CAUSES = 40;
const TYPES = 8;
const SET = 1_000;
const TIMES = 15;
const GOAL_MS = 100;

/** The verdict about the nth job: it dies by one of the causes. */
function verdictOf(n) {
  const cause = n % CAUSES;
  const failure = {
    class: "network",
    severity: "warning",
    name: "ConnectError",
    message: `connect ETIMEDOUT to host ${cause}`,
    stack: null,
    fingerprint: `cause${String(cause).padStart(11, "0")}`,
  };
  return { kind: "dead", reason: "exhausted", charge: { attempts: 1, crashes: 0 }, failure };
}

/** Enqueues, claims and kills jobs, a set at a time. */
async function fillLetters(store) {
  const worker = realSystem.workerId();
  await store.register({ id: worker, leaseMs: 3_600_000, pid: process.pid, host: "bench", release: "1.0.0" });
  const { version: control } = await store.control();
  for (let died = 0; died < LETTERS; died += SET) {
    await store.enqueue(Array.from({ length: SET }, (_, n) => newJob({ type: `type-${(died + n) % TYPES}` })));
    const { lanes } = await store.lanes(null, 100);
    const quotas = lanes.map(({ lane }) => ({ lane, limit: SET }));
    const claim = {
      worker,
      quotas,
      limit: SET,
      nonce: realSystem.nonce(),
      control,
      ticket: died + 1,
      startedThrough: died,
    };
    const { jobs } = await store.claim(claim);
    const settlements = jobs.map(({ id, epoch, nonce }, at) => ({ id, epoch, nonce, verdict: verdictOf(died + at) }));
    await store.settle({ settlements, worker, startedThrough: died + SET, release: "1.0.0" });
  }
  for (let more = true; more; ) ({ more } = await store.fold({ limit: SET }));
}

/** The middle and the worst time of a question, or of each of its parts. */
async function timed(name, ask, parts = 1) {
  const took = [];
  for (let n = 0; n < TIMES; n++) {
    const began = performance.now();
    await ask();
    took.push((performance.now() - began) / parts);
  }
  const [middle, worst] = [quantile(took, 0.5), Math.max(...took)];
  const verdict = middle <= GOAL_MS ? "" : `  over the goal of ${GOAL_MS} ms`;
  console.log(
    `${name.padEnd(34)} ${middle.toFixed(1).padStart(9)} ms  worst ${worst.toFixed(1).padStart(9)} ms${verdict}`,
  );
}

/** What `dlq triage` asks about one cause, and about each of all: the whole page, divided by its causes. */
async function askTriage(store, fingerprint) {
  const alive = { pid: process.pid, host: "bench", isAlive: () => true };
  const redrive = await assemble({ store, jobs: [], log: "silent" }, { system: realSystem, process: alive });
  await timed("triage of one cause", () => triageCauses(redrive, { fingerprint }));
  await timed(`triage of ${CAUSES} causes`, () => triageCauses(redrive, { limit: CAUSES }), CAUSES);
}

async function ask(store) {
  const began = performance.now();
  await fillLetters(store);
  console.log(`${LETTERS} letters of ${CAUSES} causes in ${((performance.now() - began) / 1_000).toFixed(1)} s`);
  const { now } = await store.control();
  const hour = { from: now - 3_600_000, until: now, stepMs: 60_000 };
  const { items } = await store.causes({ limit: 50 });
  const live = items.reduce((sum, cause) => sum + cause.live, 0);
  if (live !== LETTERS) throw new Error(`Expected ${LETTERS} letters to be counted; got ${live}.`);
  const { fingerprint } = items[0];
  await timed("causes, a page of 50", () => store.causes({ limit: 50 }));
  await timed("causes, one of them", () => store.causes({ limit: 1, fingerprint }));
  await timed("trend of a cause, an hour", () => store.trend({ ...hour, fingerprint }));
  await timed("trend of the flow, an hour", () => store.trend(hour));
  await timed("letters of a cause, a page of 50", () => store.deadLetters({ limit: 50, fingerprint, payloads: false }));
  await askTriage(store, fingerprint);
  await timed("fold with nothing to do", () => store.fold({ limit: SET }));
  await timed("recount of one cause", () => store.recount({ after: "", limit: 1 }));
  await timed("recount of all causes", () => store.recount({ after: "", limit: CAUSES + 1 }));
}

const NAMES = ["sqlite", "postgres"];
const store = values.only ?? "sqlite";
if (!NAMES.includes(store)) throw new Error(`--only: expected one of ${NAMES.join(", ")}; got ${store}.`);
await inScratch(async (folder) => {
  if (store === "sqlite") return withStore(join(folder, "jobs.db"), ask);
  const server = await startPostgres(folder);
  try {
    await inDatabase(server, async (url) => {
      const opened = createPostgresStore({ url });
      try {
        await ask(opened);
      } finally {
        await opened.close();
      }
    });
  } finally {
    await server.stop();
  }
});
