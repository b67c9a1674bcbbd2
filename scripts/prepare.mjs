// `node scripts/prepare.mjs --browser --spark --redis …`: fetches programs that tests use where they are found, each from
// Debian's packages or Python's index as this machine is set up for them. Says in one line what became of each, and ends
// with 0 also where one could not be had: tests that need it are skipped then. `--check` fetches nothing.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { PYTHON_TOOLS, TOOLS } from "./tools.mjs";

const LONGEST_MS = 10 * 60_000;
const USAGE = `Usage: node scripts/prepare.mjs [--check] [${Object.keys(TOOLS)
  .map((option) => `--${option}`)
  .join("] [")}]\n`;

function run(command, args) {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const { status, stderr, error } = spawnSync(command, args, { env, encoding: "utf8", timeout: LONGEST_MS });
  if (status === 0) return null;
  const said = (stderr ?? "").trim().split("\n").at(-1);
  return error?.message ?? (said || `${command} ended with ${status}`);
}

function fromDebian(name) {
  if (process.getuid?.() !== 0) return `run as root, or install the Debian package ${name} yourself`;
  const install = () => run("apt-get", ["install", "--yes", "--no-install-recommends", name]);
  // The lists of a fresh machine are empty.
  return install() === null ? null : (run("apt-get", ["update"]) ?? install());
}

function fromPython(name) {
  const python = join(PYTHON_TOOLS, "bin", "python");
  return run("python3", ["-m", "venv", PYTHON_TOOLS]) ?? run(python, ["-m", "pip", "install", "--quiet", name]);
}

function prepare(option, onlyCheck) {
  const { name, debian, python, isHere } = TOOLS[option];
  if (isHere()) return `${name}: is here`;
  if (onlyCheck) return `${name}: is not here`;
  const problem = debian ? fromDebian(debian) : fromPython(python);
  if (problem !== null) return `${name}: not to be had (${problem})`;
  return isHere() ? `${name}: installed` : `${name}: installed, but not found where it is looked for`;
}

const options = Object.fromEntries(["check", ...Object.keys(TOOLS)].map((option) => [option, { type: "boolean" }]));
let values = {};
try {
  ({ values } = parseArgs({ options }));
} catch (error) {
  process.stderr.write(`${error.message}\n\n${USAGE}`);
  process.exit(2);
}
const { check = false, ...asked } = values;
const chosen = Object.keys(asked).length > 0 ? Object.keys(asked) : check ? Object.keys(TOOLS) : [];
if (chosen.length === 0) process.stdout.write(USAGE);
for (const option of chosen) process.stdout.write(`${prepare(option, check)}\n`);
