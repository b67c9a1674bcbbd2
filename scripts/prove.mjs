// `npm run prove -- <what>`: the long proofs. Seeds by the thousand, and the checker's own speed.
//   simulate [--seeds N] [--store memory|sqlite] [--seed S]   seeded worlds; --seed alone plays that one seed again
//   chaos [--store S] [--kills N] [--pauses M] [--seed S] …   real processes and servers, killed; --help says more
//   outages [--minutes N]                                     a service that is down so long, and the other scenes of
//                                                             limits and fairness, on virtual time and every store
//   batch [--kills N] [--seed S]                              `redrive batch`, killed at random moments of one run
//   checker                                                   ten million events through the history checker
//   package [--nodes 20,22,24,26]                             what users install, on these versions of Node
//   growth [--short]                                          Postgres with millions of jobs kept; writes docs/stores
// The code is TypeScript and Node 20 runs none, so vitest runs it, told by environment variables what to do.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ready, root } from "./ready.mjs";

const USAGE = `Usage: npm run prove -- <what> [options]

  simulate  --seeds N               how many seeds (default 200 on each store)
            --store memory|sqlite   only this store
            --seed S                the first seed; without --seeds only this one is played
  chaos     --store sqlite|postgres real processes, killed and halted, on one file or on a server that is killed too,
                                    behind a network that fails; --help says more
  outages   --minutes N             a service that is down under 50 jobs a second, default 40 minutes of virtual time
  batch     --kills N --seed S      one run of \`redrive batch\` over 40 items a kill (default 50), killed at random moments
  checker                           reads ten million events and says how long that took
  package   --nodes 20,22,24,26     packs, installs in an empty project and runs on these versions of Node
  growth    --short                 speed and size of Postgres tables as they grow; writes docs/stores/postgres-growth.*
`;

/** Tests that do more when they are to prove it. */
const INCLUDED = {
  outages: ["test/worker/service-outage.test.ts", "test/worker/fairness.test.ts"],
  batch: ["test/cli/batch.test.ts"],
};
const SUBJECTS = { simulate, outages, batch, checker: () => ({}) };

function outages(args) {
  const { values } = parseArgs({ args, options: { minutes: { type: "string" } } });
  return { REDRIVE_PROVE_OUTAGE_MINUTES: whole("--minutes", values.minutes ?? "40") };
}

function batch(args) {
  const { values } = parseArgs({ args, options: { kills: { type: "string" }, seed: { type: "string" } } });
  return {
    REDRIVE_PROVE_KILLS: whole("--kills", values.kills ?? "50"),
    REDRIVE_PROVE_SEED: whole("--seed", values.seed ?? "1"),
  };
}

function simulate(args) {
  const options = { seeds: { type: "string" }, store: { type: "string" }, seed: { type: "string" } };
  const { values } = parseArgs({ args, options });
  if (values.store !== undefined && !["memory", "sqlite"].includes(values.store)) {
    throw new Error(`--store must be memory or sqlite; got ${String(values.store)}.`);
  }
  const seeds = values.seeds ?? (values.seed === undefined ? "200" : "1");
  return {
    REDRIVE_PROVE_SEEDS: whole("--seeds", seeds),
    REDRIVE_PROVE_SEED: whole("--seed", values.seed ?? "1"),
    ...(values.store === undefined ? {} : { REDRIVE_PROVE_STORE: values.store }),
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
Object.assign(process.env, asked, { REDRIVE_PROVE: subject });
// Only now, because before `ready` it may not be installed.
const { startVitest } = await import("vitest/node");
const vitest = await startVitest("test", [], {
  root,
  watch: false,
  include: INCLUDED[subject] ?? ["test/simulation/prove.ts"],
  reporters: [["default", { summary: false }]],
  disableConsoleIntercept: true,
  execArgv: ["--max-old-space-size=6144"],
});
await vitest.close();
