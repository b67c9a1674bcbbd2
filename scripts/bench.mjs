// `npm run bench -- [store|worker|retryable] [--short] [--no-peers]`: the benchmarks; without a name all of them, one
// after the other, because they would only measure each other. Installs the peers once, into a folder of their own.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ready, root } from "./ready.mjs";

const USAGE = `Usage: npm run bench -- [name] [options]

  store     the SQLite store alone, beside the equal-work limit
  worker    a whole worker, beside the equal-work limit, plainjob and bee-queue
  retryable a call that succeeds at once, beside cockatiel and p-retry

  --short      a quick look with few jobs: nothing crashes, the figures say little
  --no-peers   worker, retryable: without those beside them
  --only a,b   worker: only throughput, enqueue, pick-up, retries, scheduled, memory or killer
`;

const NAMES = ["store", "worker", "retryable"];
const peers = join(root, "bench", "peers");

const OPTIONS = { short: { type: "boolean" }, "no-peers": { type: "boolean" }, only: { type: "string" } };

const args = process.argv.slice(2);
const [name] = args[0]?.startsWith("--") ? [] : args.splice(0, 1);
if (name !== undefined && !NAMES.includes(name)) refuse(`There is no benchmark called ${JSON.stringify(name)}.`);
try {
  parseArgs({ args, options: OPTIONS });
} catch (error) {
  refuse(error.message);
}

ready();
const names = name === undefined ? NAMES : [name];
if (names.some((each) => each !== "store") && !args.includes("--no-peers") && !peersMatch()) installPeers();
for (const each of names) {
  process.stdout.write(`${names.length > 1 ? `\n${each}\n` : ""}`);
  const code = await run(each);
  if (code !== 0) process.exit(code);
}

function refuse(message) {
  process.stderr.write(`${message}\n\n${USAGE}`);
  process.exit(2);
}

// The same comparison as for our own dependencies: versions, not times.
function peersMatch() {
  const installed = join(peers, "node_modules", ".package-lock.json");
  if (!existsSync(installed)) return false;
  const read = (file) => JSON.parse(readFileSync(file, "utf8")).packages;
  const [wanted, have] = [read(join(peers, "package-lock.json")), read(installed)];
  return Object.keys(wanted).every((path) => path === "" || wanted[path].version === have[path]?.version);
}

function installPeers() {
  process.stderr.write("Installing the peers into bench/peers with npm ci, once.\n");
  const cli = process.env.npm_execpath ?? "";
  const [command, first] = cli.endsWith("npm-cli.js") ? [process.execPath, [cli]] : ["npm", []];
  const flags = ["ci", "--no-audit", "--no-fund"];
  const result = spawnSync(command, [...first, ...flags], { cwd: peers, encoding: "utf8" });
  if (result.status === 0) return;
  process.stderr.write(`${result.stderr}\nInstalling the peers failed; their rows are left out.\n`);
}

function run(each) {
  return new Promise((resolve) => {
    const program = join(root, "bench", `${each}.mjs`);
    const child = spawn(process.execPath, [program, ...args], { cwd: root, stdio: "inherit" });
    child.on("close", (code) => resolve(code ?? 1));
  });
}
