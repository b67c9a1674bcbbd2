// `npm run prove -- <what>`: the long proofs. Seeds by the thousand, and the checker's own speed.
//   simulate [--seeds N] [--store S] [--seed S]               seeded worlds; --seed alone plays that one seed again
//   chaos [--store S] [--kills N] [--pauses M] [--seed S] …   real processes and servers, killed; --help says more
//   interleave [--seeds N] [--seed S]                         statements of several processes on Postgres, in any order
//   outages [--minutes N]                                     a service that is down so long, and the other scenes of
//                                                             limits and fairness, on virtual time and every store
//   recall [--tries N] [--seed S]                             jobs that are taken back beside 50 busy slots
//   doors [--inputs N] [--seed S]                             the library and the SQL function, given the same inputs
//   batch [--kills N] [--seed S]                              `redrive batch`, killed at random moments of one run
//   redrives [--only PART] [--kills N] [--tries N] [--letters N] [--many N] [--seed S]
//                                                             redrive runs: drivers that are killed, a bug that hits one in
//                                                             ten, an incident, very many letters, what they wait for
//   metrics [--jobs N] [--kills N]                            figures of real workers against the books of the store
//   http-fuzz [--requests N] [--seed S]                       requests made from the OpenAPI document, to a real server
//   http-streams [--kills N]                                  event streams whose server is killed at random moments
//   alerts [--kills N] [--seed S]                             processes that tell alerts, killed at random moments
//   monitoring                                                Prometheus scrapes real workers through a bad day
//   corpus [--make]                                           how well fingerprints tell the causes of real errors apart
//   classes                                                   the errors that libraries throw, and how the rules judge them
//   triage                                                    labelled incidents, and how triage advises on them
//   browser                                                   every page of the dashboard in chromium: axe, hostile texts
//   upgrade [--from V] [--store S] [--jobs N] [--letters N]   a store of an older version migrated beside its workers
//   checker                                                   ten million events through the history checker
//   package [--nodes 20,22,24,26]                             what users install, on these versions of Node
//   growth [--short]                                          Postgres with millions of jobs kept; writes docs/stores
//   conformance                                               all groups of the suite of a store, on every store
//   model [--runs N]                                          random commands on the memory store and on every other
//   examples                                                  every example on SQLite and on Postgres
//   bench                                                     every benchmark in short
//   timed                                                     what only a clock can judge: rates, shares, latencies
//   steady [--runs N] [--busy N] [-- …]                       the test command again and again beside busy loops
//   planted [--only TEXT]                                     defects that were there once, switched on again
//   mutate [--mutants N] [--seed S] [--minutes M] …           which changes of the library no test notices
// The code is TypeScript and Node 20 runs none, so vitest runs it, told by environment variables what to do.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ready, root } from "./ready.mjs";

const USAGE = `Usage: npm run prove -- <what> [options]

  simulate  --seeds N               how many seeds (default 200 on each store)
            --store memory|sqlite   only this store
            --store postgres        the seeds that once found something, on a real server
            --seed S                the first seed; without --seeds only this one is played
  chaos     --store sqlite|postgres real processes, killed and halted, on one file or on a server that is killed too,
                                    behind a network that fails; --help says more
  interleave --seeds N --seed S     statements of several processes on Postgres, stepped in seeded order (default 200
                                    seeds); says which ordered pairs of statements they met
  outages   --minutes N             a service that is down under 50 jobs a second, default 40 minutes of virtual time
  recall    --tries N --seed S      sends jobs back and recalls them beside a worker of 50 slots (default 1000 tries on
                                    SQLite and on Postgres): each is claimed or recalled
  doors     --inputs N --seed S     so many enqueues (default 10000), good and bad, through the library and through the SQL
                                    function of Postgres: the same answers and the same rows
  batch     --kills N --seed S      one run of \`redrive batch\` over 40 items a kill (default 50), killed at random moments
  redrives  --kills N --seed S      one redrive run over 40 letters a kill (default 50), its drivers killed at random moments,
                                    on SQLite and on Postgres
            --tries N               so many runs (default 100) over letters of which one in ten still fails: 99 of 100 stop
                                    before 60 are sent
            --letters N             so many letters (default 10000) of one cause: a run stops at its first step while the bug
                                    is there, and sends all, in order inside groups and at its rate, once it is fixed
            --many N                one run over so many letters (default 1000000); says how long plan and start take, and
                                    the memory of the driving process
            --only PART             killed, tenth, incident, many or waits: only this one
  metrics   --jobs N --kills N      two workers and so many jobs (default 10000) that fail, retry, die and are sent back, on
                                    SQLite and on Postgres: counters and gauges equal the books of the store; then with
                                    kills (default 10), after which counters are at most that
  http-fuzz --requests N --seed S   so many requests (default 20000), made from the OpenAPI document, to \`redrive up\` on
                                    SQLite and on Postgres: none is answered with 5xx, every route answers some with 2xx,
                                    no job is lost, and memory stays as it was
  http-streams --kills N            a hundred readers of events, whose server is killed and started again so often (default
                                    20), have every event once
  alerts    --kills N --seed S      two workers that tell alerts, one of them killed at a random moment of each alert (default
                                    20 alerts), on SQLite and on Postgres: each is told once or twice, none is left out
  monitoring                        Debian's Prometheus scrapes real workers through a bad day (errors, an outage, a kill):
                                    every expression of board and rules answers; without Prometheus it is skipped
  corpus    --make                  precision, recall and F1 of fingerprints on test/fixtures/errors.jsonl; --make first
                                    makes that file from the programs of test/corpus, with npm, Python and Java
  classes                           judges the errors that libraries throw (test/fixtures/classes.jsonl), says for each
                                    half how many classes and retry decisions are right, and lists the wrong ones of
                                    the half that the rules were written after
  triage                            plays 80 labelled incidents and asks triage about each (test/fixtures/incidents-*.ts);
                                    says for each half how many answers are right, and lists the wrong ones of the half
                                    that rules may be written after
  browser                           every page of the dashboard at two widths, light and dark, judged by axe, and a hundred
                                    texts that try to become code; pictures go to bench/results/dashboard
  upgrade   --store sqlite|postgres only this store
            --jobs N --letters N    a store of the version before with so many jobs (default 100000) and dead letters of
                                    them (default 10000) is migrated while two workers of that version are at work; says
                                    how long they stood still (5 s at most), that nothing is lost, and that counts are right
            --from 1                the version of the store and of its workers (default 2)
  checker                           reads ten million events and says how long that took
  package   --nodes 20,22,24,26     packs, installs in an empty project and runs on these versions of Node
  growth    --short                 speed and size of Postgres tables as they grow; writes docs/stores/postgres-growth.*
  conformance                       all that a store must keep, on every store; the test command plays less of it on
                                    Postgres 15 and on SQLite behind its thread
  model     --runs N                the same random commands on the memory store and on every other, N sequences each
                                    (from a fresh seed; without N the first 240 on SQLite and 40 on Postgres)
  examples                          every example as a user runs it, on SQLite and on Postgres
  bench                             every row of every benchmark, in short: nothing crashes
  timed                             rates, shares and latencies in real time (test/**/*.timed.ts), on a quiet machine
  steady    --runs N --busy N       the test command N times in a row (default 5) beside N busy loops (default 2);
                                    what follows -- goes to vitest
  planted   --only TEXT             switches defects that were there once on again, one at a time in a copy of the tree,
                                    and fails unless a test notices each; TEXT is a part of its name
  mutate    --mutants N --seed S    changes one thing at a time in a copy of the library (default 100 changes) and says
                                    which of them no test notices; goes on where it was stopped
            --minutes M             begins no further change after so long (default 60)
            --in TEXT --out FILE    only files whose path holds the text; where the results are kept
`;

const PARTS_OF_REDRIVES = ["killed", "tenth", "incident", "many", "waits"];
const fileOfRedrives = (part) => `test/redrives/${part}.test.ts`;

/** Tests that do more when they are to prove it. */
const INCLUDED = {
  outages: [
    "test/services/service-outage.test.ts",
    "test/services/service-outage-history.test.ts",
    "test/services/service-hold.test.ts",
    "test/services/long-probes.test.ts",
    "test/worker/fairness.test.ts",
    "test/worker/isolated-breaker.test.ts",
    "test/worker/limited-suspects.test.ts",
    "test/upkeep/virtual-day.test.ts",
  ],
  simulate: ["test/simulation/prove.ts"],
  postgres: ["test/simulation/postgres.test.ts"],
  recall: ["test/store/recall.test.ts"],
  doors: ["test/store/postgres/doors.test.ts"],
  batch: ["test/cli/batch.test.ts", "test/jobs/subprocess.test.ts"],
  redrives: PARTS_OF_REDRIVES.map(fileOfRedrives),
  metrics: ["test/cli/metrics-books.test.ts"],
  "http-fuzz": ["test/http/fuzz.test.ts"],
  "http-streams": ["test/http/streams.test.ts"],
  alerts: ["test/alerts/killed.test.ts"],
  monitoring: ["test/metrics/prove-bad-day.ts"],
  interleave: ["test/interleavings/interleavings.test.ts"],
  corpus: ["test/corpus/corpus.test.ts"],
  classes: ["test/core/prove-classes.ts"],
  triage: ["test/operate/prove-triage.ts"],
  upgrade: ["test/store/upgrade.test.ts"],
  conformance: ["memory", "sqlite", "sqlite-threaded", "postgres", "postgres-15"].map(
    (store) => `test/conformance/${store}.test.ts`,
  ),
  model: ["test/conformance/model.test.ts"],
  examples: ["test/examples/*.test.ts", "test/docs-other-languages.test.ts"],
  bench: ["test/bench/smoke.test.ts"],
  timed: ["test/**/*.timed.ts"],
  browser: ["test/browser/prove-pages.ts"],
};
const NOTHING = () => ({});
const SUBJECTS = {
  simulate,
  interleave,
  outages,
  recall,
  doors,
  batch: killing("50"),
  redrives,
  metrics,
  "http-fuzz": httpFuzz,
  "http-streams": httpStreams,
  alerts: killing("20"),
  monitoring: NOTHING,
  corpus,
  classes: NOTHING,
  triage: NOTHING,
  upgrade,
  checker: NOTHING,
  conformance: NOTHING,
  model,
  examples: NOTHING,
  bench: NOTHING,
  timed: NOTHING,
  browser: NOTHING,
};

function outages(args) {
  const { values } = parseArgs({ args, options: { minutes: { type: "string" } } });
  return { REDRIVE_PROVE_OUTAGE_MINUTES: whole("--minutes", values.minutes ?? "40") };
}

function recall(args) {
  const { values } = parseArgs({ args, options: { tries: { type: "string" }, seed: { type: "string" } } });
  return {
    REDRIVE_PROVE_TRIES: whole("--tries", values.tries ?? "1000"),
    REDRIVE_PROVE_SEED: whole("--seed", values.seed ?? "1"),
  };
}

function doors(args) {
  const { values } = parseArgs({ args, options: { inputs: { type: "string" }, seed: { type: "string" } } });
  return {
    REDRIVE_PROVE_INPUTS: whole("--inputs", values.inputs ?? "10000"),
    REDRIVE_PROVE_SEED: whole("--seed", values.seed ?? "1"),
  };
}

/** A subject that kills processes so many times. */
function killing(kills) {
  return (args) => {
    const { values } = parseArgs({ args, options: { kills: { type: "string" }, seed: { type: "string" } } });
    return {
      REDRIVE_PROVE_KILLS: whole("--kills", values.kills ?? kills),
      REDRIVE_PROVE_SEED: whole("--seed", values.seed ?? "1"),
    };
  };
}

function redrives(args) {
  const given = { type: "string" };
  const options = { only: given, kills: given, tries: given, letters: given, many: given, seed: given };
  const { values } = parseArgs({ args, options });
  if (values.only !== undefined && !PARTS_OF_REDRIVES.includes(values.only))
    throw new Error(`--only must be one of ${PARTS_OF_REDRIVES.join(", ")}; got ${String(values.only)}.`);
  if (values.only !== undefined) INCLUDED.redrives = [fileOfRedrives(values.only)];
  return {
    REDRIVE_PROVE_LETTERS: whole("--letters", values.letters ?? "10000"),
    REDRIVE_PROVE_MANY: whole("--many", values.many ?? "1000000"),
    REDRIVE_PROVE_KILLS: whole("--kills", values.kills ?? "50"),
    REDRIVE_PROVE_TRIES: whole("--tries", values.tries ?? "100"),
    REDRIVE_PROVE_SEED: whole("--seed", values.seed ?? "1"),
  };
}

function metrics(args) {
  const { values } = parseArgs({ args, options: { jobs: { type: "string" }, kills: { type: "string" } } });
  return {
    REDRIVE_PROVE_JOBS: whole("--jobs", values.jobs ?? "10000"),
    REDRIVE_PROVE_KILLS: whole("--kills", values.kills ?? "10"),
  };
}

function httpFuzz(args) {
  const { values } = parseArgs({ args, options: { requests: { type: "string" }, seed: { type: "string" } } });
  return {
    REDRIVE_PROVE_REQUESTS: whole("--requests", values.requests ?? "20000"),
    REDRIVE_PROVE_SEED: whole("--seed", values.seed ?? "1"),
  };
}

function httpStreams(args) {
  const { values } = parseArgs({ args, options: { kills: { type: "string" } } });
  return { REDRIVE_PROVE_KILLS: whole("--kills", values.kills ?? "20") };
}

function model(args) {
  const { values } = parseArgs({ args, options: { runs: { type: "string" } } });
  return values.runs === undefined ? {} : { RUNS: whole("--runs", values.runs) };
}

function corpus(args) {
  const { values } = parseArgs({ args, options: { make: { type: "boolean" } } });
  return values.make ? { REDRIVE_PROVE_MAKE: "1" } : {};
}

function simulate(args) {
  const options = { seeds: { type: "string" }, store: { type: "string" }, seed: { type: "string" } };
  const { values } = parseArgs({ args, options });
  if (values.store !== undefined && !["memory", "sqlite", "postgres"].includes(values.store)) {
    throw new Error(`--store must be memory, sqlite or postgres; got ${String(values.store)}.`);
  }
  if (values.store === "postgres" && (values.seeds ?? values.seed) !== undefined) {
    throw new Error(
      "--store postgres plays the seeds that once found something, and takes neither --seed nor --seeds.",
    );
  }
  const seeds = values.seeds ?? (values.seed === undefined ? "200" : "1");
  return {
    REDRIVE_PROVE_SEEDS: whole("--seeds", seeds),
    REDRIVE_PROVE_SEED: whole("--seed", values.seed ?? "1"),
    ...(values.store === undefined ? {} : { REDRIVE_PROVE_STORE: values.store }),
  };
}

function upgrade(args) {
  const text = { type: "string" };
  const options = { from: text, store: text, jobs: text, letters: text };
  const { from = "2", store, jobs = "100000", letters = "10000" } = parseArgs({ args, options }).values;
  if (!["1", "2"].includes(from)) throw new Error(`--from must be 1 or 2; got ${String(from)}.`);
  if (store !== undefined && !["sqlite", "postgres"].includes(store))
    throw new Error(`--store must be sqlite or postgres; got ${String(store)}.`);
  if (Number(letters) >= Number(jobs))
    throw new Error(`--letters must be fewer than the jobs, ${String(jobs)}; got ${String(letters)}.`);
  return {
    REDRIVE_PROVE_FROM: from,
    REDRIVE_PROVE_JOBS: whole("--jobs", jobs),
    REDRIVE_PROVE_LETTERS: whole("--letters", letters),
    ...(store === undefined ? {} : { REDRIVE_PROVE_STORE: store }),
  };
}

function interleave(args) {
  const { values } = parseArgs({ args, options: { seeds: { type: "string" }, seed: { type: "string" } } });
  const seeds = values.seeds ?? (values.seed === undefined ? "200" : "1");
  return {
    REDRIVE_PROVE_SEEDS: whole("--seeds", seeds),
    REDRIVE_PROVE_SEED: whole("--seed", values.seed ?? "1"),
  };
}

function whole(name, text) {
  if (!/^[0-9]{1,9}$/.test(text) || Number(text) < 1) {
    throw new Error(`${name} must be a whole number from 1 to 999999999; got ${text}.`);
  }
  return text;
}

function refuse(message) {
  process.stderr.write(`${message}\n\n${USAGE}`);
  process.exit(2);
}

const [subject, ...args] = process.argv.slice(2);
if (subject === "chaos") {
  ready({ build: "optional" });
  const { chaos } = await import("../test/chaos/prepare.mjs");
  process.exit(await chaos(args));
}
if (subject === "package") {
  const { provePackage } = await import("./package.mjs");
  process.exit(await provePackage(args));
}
if (subject === "steady") {
  const { steady } = await import("./steady.mjs");
  process.exit(await steady(args).catch((error) => refuse(error.message)));
}
if (subject === "planted") {
  ready({ build: "optional" });
  const { plantAll } = await import("./planted.mjs");
  try {
    process.exit(plantAll(args));
  } catch (error) {
    refuse(error.message);
  }
}
if (subject === "mutate") {
  ready({ build: "optional" });
  const { mutate } = await import("./mutate.mjs");
  process.exit(await mutate(args).catch((error) => refuse(error.message)));
}
if (subject === "growth") {
  if (args.some((each) => each !== "--short")) refuse(`growth takes --short and nothing else; got ${args.join(" ")}.`);
  ready();
  const program = join(root, "bench", "postgres-growth.mjs");
  process.exit(spawnSync(process.execPath, [program, ...args], { stdio: "inherit" }).status ?? 1);
}
if (subject === undefined || !Object.hasOwn(SUBJECTS, subject)) {
  refuse(subject === undefined ? "Say what to prove." : `There is nothing to prove called ${JSON.stringify(subject)}.`);
}
let asked;
try {
  asked = SUBJECTS[subject](args);
} catch (error) {
  refuse(error.message);
}

ready({ build: "optional" });
if (asked.REDRIVE_PROVE_MAKE) await (await import("../test/corpus/make.mjs")).makeCorpus();
Object.assign(process.env, asked, { REDRIVE_PROVE: subject });
// Only now, because before `ready` it may not be installed.
const { startVitest } = await import("vitest/node");
const isOnServer = subject === "simulate" && asked.REDRIVE_PROVE_STORE === "postgres";
const vitest = await startVitest("test", [], {
  root,
  watch: false,
  include: INCLUDED[isOnServer ? "postgres" : subject] ?? INCLUDED.simulate,
  reporters: [["default", { summary: false }]],
  disableConsoleIntercept: true,
  execArgv: ["--max-old-space-size=6144"],
  // One after the other, because they would only measure each other.
  ...(subject === "timed" ? { maxWorkers: 1 } : {}),
});
await vitest.close();
