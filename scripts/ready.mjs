// Makes a checkout ready to run: the Node version, the dependencies, the SQLite driver, the build.
// Every entry script calls `ready()` first. It does only what is missing and says each thing in one line on stderr.
// Only Node built-ins here, because this file runs before anything is installed.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The top of the checkout. */
export const root = fileURLToPath(new URL("..", import.meta.url));

const inRoot = (...parts) => join(root, ...parts);
const say = (line) => process.stderr.write(`${line}\n`);
const [major, minor] = process.versions.node.split(".").map(Number);

// Written after a good build; outside dist, so that it is never published.
const stamp = inRoot("node_modules", ".cache", "redrive-built");

/** Does what is missing. Returns whether dist matches src; exits on a failed build only where `build` is "required". */
export function ready({ build = "required" } = {}) {
  if (major < 20 || (major === 20 && minor < 19)) {
    fail(`Redrive needs Node 20.19 or newer; this is ${process.versions.node}. Install one from https://nodejs.org.`);
  }
  if (!dependenciesMatch()) install();
  if (major < 24) prepareDriver();
  if (distIsFresh()) return true;
  say("Building dist (it is missing or older than its sources).");
  const startedAt = new Date();
  const compile = (project) => run(process.execPath, [inRoot("node_modules/typescript/bin/tsc"), "-p", project]);
  // The examples see the library as it was built, like any program that uses it.
  let result = compile("tsconfig.build.json");
  if (result.status === 0) result = run(process.execPath, [inRoot("scripts/bundle.mjs"), inRoot("dist")]);
  if (result.status === 0) result = run(process.execPath, [inRoot("scripts/dashboard.mjs"), inRoot("dist")]);
  if (result.status === 0) result = compile("tsconfig.examples.json");
  if (result.status === 0) {
    mkdirSync(dirname(stamp), { recursive: true });
    writeFileSync(stamp, "");
    utimesSync(stamp, startedAt, startedAt); // What changes while tsc runs is newer than the build.
    return true;
  }
  if (build === "required") fail("The build failed; see the errors above.", result);
  return false;
}

// Compares contents rather than times: a fresh clone or a changed branch gives files arbitrary times.
// An optional package may be on one side only: it is for another platform, or it did not compile. A package for another
// platform may stand in the lockfile without its hash.
function dependenciesMatch() {
  const installedFile = inRoot("node_modules", ".package-lock.json");
  if (!existsSync(installedFile)) return false;
  const wanted = JSON.parse(readFileSync(inRoot("package-lock.json"), "utf8")).packages;
  const installed = JSON.parse(readFileSync(installedFile, "utf8")).packages;
  const paths = new Set([...Object.keys(wanted), ...Object.keys(installed)].filter((path) => path !== ""));
  return [...paths].every((path) => {
    const [want, have] = [wanted[path], installed[path]];
    if (!want || !have) return (want ?? have).optional || (want ?? have).devOptional;
    return (
      want.version === have.version && (want.integrity ?? have.integrity) === have.integrity && existsSync(inRoot(path))
    );
  });
}

function install() {
  const compiling = major < 24 ? " (the SQLite driver compiles for about 90 s where no prebuilt binary exists)" : "";
  say(`Installing dependencies with npm ci${compiling}.`);
  const flags = ["--include=dev", "--include=optional", "--no-audit", "--no-fund"];
  const result = npm("ci", ...flags);
  if (result.status !== 0) fail("Installing dependencies failed; npm's output is above.", result);
}

function prepareDriver() {
  if (!existsSync(inRoot("node_modules", "better-sqlite3"))) {
    say("better-sqlite3 is not installed, so there is no SQLite store below Node 24; npm install adds it.");
    return;
  }
  try {
    // Opening a database is the only honest test: the package loads its binary no earlier.
    const Database = createRequire(import.meta.url)("better-sqlite3");
    new Database(":memory:").close();
    return;
  } catch (error) {
    const why = /NODE_MODULE_VERSION/.test(error.message)
      ? "was built for another Node version"
      : "has no usable binary";
    say(`better-sqlite3 ${why}; running npm rebuild better-sqlite3 (up to about 90 s).`);
  }
  const result = npm("rebuild", "better-sqlite3");
  if (result.status !== 0) fail("npm rebuild better-sqlite3 failed; its output is above.", result);
  // In a new process: one that failed to load a binary cannot load its successor.
  const again = run(process.execPath, ["-e", 'new (require("better-sqlite3"))(":memory:").close()']);
  if (again.status !== 0) fail("better-sqlite3 does not load even after npm rebuild; see the error above.", again);
}

// Folders count too: their time changes when a file is removed or renamed.
function distIsFresh() {
  if (!existsSync(stamp) || !existsSync(inRoot("dist"))) return false;
  const builtAt = statSync(stamp).mtimeMs;
  const folders = ["src", "dashboard", "examples/shop", "examples/kit"];
  const names = folders.flatMap((folder) =>
    readdirSync(inRoot(folder), { recursive: true }).map((name) => join(folder, name)),
  );
  const settings = ["tsconfig.json", "tsconfig.build.json", "tsconfig.examples.json", "package-lock.json"];
  const inputs = ["scripts/bundle.mjs", "scripts/dashboard.mjs", ...settings, ...folders, ...names];
  return inputs.every((name) => statSync(inRoot(name)).mtimeMs <= builtAt);
}

// The npm that runs us where there is one.
function npm(...args) {
  const cli = process.env.npm_execpath ?? "";
  return cli.endsWith("npm-cli.js") ? run(process.execPath, [cli, ...args]) : run("npm", args);
}

// Always our own Node, and its own headers where it brings them, so that the driver is built for it and no other. Its two
// halves compile side by side.
function run(command, args) {
  const prefix = dirname(dirname(process.execPath));
  const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` };
  env.JOBS ??= "max";
  if (existsSync(join(prefix, "include", "node", "node.h"))) env.npm_config_nodedir = prefix;
  const shell = process.platform === "win32" && command === "npm";
  return spawnSync(command, args, { cwd: root, env, shell, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
}

function fail(message, result) {
  if (result) process.stderr.write(`${result.stdout ?? ""}${result.stderr ?? ""}${result.error?.message ?? ""}\n`);
  say(message);
  process.exit(1);
}
