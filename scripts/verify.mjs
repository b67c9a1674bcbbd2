// Runs every check of the repository in order, each whatever became of the one before, and ends with one line
// `N passed, N failed`. Shared by test.mjs (everything) and check.mjs (no tests but the tidy test).
// Types (those of the dashboard are a check of their own), lint and format count as one check each; the rest of the numbers is vitest's own report.

import { spawn, spawnSync } from "node:child_process";
import { accessSync, chmodSync, constants, existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGuardian } from "./guardian.mjs";
import { ready, root } from "./ready.mjs";
import { missingTools, TOOLS } from "./tools.mjs";

// Everything together, so that a hanging test ends as a failure and not as a killed job somewhere above us. About fifteen
// minutes on two free cores; the rest is for machines that are shared, and for compiling the driver.
const BUDGET_MS = 40 * 60_000;
const startedAt = Date.now();
// Where Linux keeps files in memory, and how much room must be there.
const MEMORY = "/dev/shm";
const MEMORY_BYTES = 4 * 1024 ** 3;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];

const npm = npmAbove();

// What the compiler found last time, so that it checks again only what changed and what uses it.
const REMEMBERED = ["--incremental", "--tsBuildInfoFile", join(root, "node_modules/.cache/types.tsbuildinfo")];

const bin = (name) => join(root, "node_modules", name);

/** Runs all checks, vitest with the given arguments, prints the closing line and sets the exit code. */
export async function verify(vitestArgs) {
  const seconds = stopwatch();
  const built = ready({ build: "optional" });
  console.log(`ready   ${seconds()}`);

  const checks = [
    await step("types", [bin("typescript/bin/tsc"), "--noEmit", "-p", "tsconfig.json", ...REMEMBERED]),
    await step("page", [bin("typescript/bin/tsc"), "--noEmit", "-p", "dashboard"]),
    await step("lint", [bin("oxlint/bin/oxlint"), "--type-aware"]),
    await step("format", [bin("@biomejs/biome/bin/biome"), "format", "--reporter=summary"], "npx biome format --write"),
  ];
  if (!built) {
    if (checks[0]) await step("build", [bin("typescript/bin/tsc"), "-p", "tsconfig.build.json"]);
    checks[0] = false;
  }
  const tests = await runTests(vitestArgs, built);

  const passed = checks.filter(Boolean).length + tests.passed;
  const failed = checks.filter((ok) => !ok).length + tests.failed;
  if (tests.skipped > 0) sayWhySkipped();
  console.log(`${passed} passed, ${failed} failed${tests.skipped ? `, ${tests.skipped} skipped` : ""}`);
  process.exitCode = failed > 0 ? 1 : 0;
}

function sayWhySkipped() {
  const missing = missingTools();
  const names = missing.map((option) => TOOLS[option].name).join(", ");
  const fetching = `node scripts/prepare.mjs ${missing.map((option) => `--${option}`).join(" ")}`;
  if (missing.length > 0) console.log(`Not found, so their tests were skipped: ${names} (to fetch: ${fetching})`);
}

async function step(name, command, remedy) {
  const seconds = stopwatch();
  const { code, output } = await node(command, "pipe");
  if (code !== 0) console.log(output.trimEnd());
  console.log(`${name.padEnd(7)} ${seconds()}  ${code === 0 ? "ok" : `FAILED${remedy ? `; to fix: ${remedy}` : ""}`}`);
  return code === 0;
}

async function runTests(args, built) {
  const seconds = stopwatch();
  const folder = mkdtempSync(join(quickFolder(), "redrive-test-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 })); // Also when interrupted.
  // Servers run as another user where we are root.
  chmodSync(folder, 0o755);
  const file = process.env.REDRIVE_TEST_REPORT ?? join(folder, "report.json");
  const reporters = ["--reporter=minimal", "--reporter=json", `--outputFile.json=${file}`];
  const env = { TMPDIR: folder, ...(built ? { REDRIVE_TEST_BUILT: join(root, "dist") } : {}) };
  const { code } = await node([bin("vitest/vitest.mjs"), "run", ...reporters, ...args], "inherit", env);
  const counts = countTests(file, code);
  console.log(`tests   ${seconds()}  ${counts.failed === 0 ? "ok" : "FAILED"}`);
  return counts;
}

// In memory where there is plenty, because the syncs of a disk are what tests of SQLite wait for most. What a sync is for
// shows in none of them: a killed process loses nothing that it has written, and commits are counted in the log.
function quickFolder() {
  if (process.env.TMPDIR) return tmpdir();
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    const [, options = "noexec"] = /^\S+ \/dev\/shm \S+ (\S+)/m.exec(readFileSync("/proc/mounts", "utf8")) ?? [];
    accessSync(MEMORY, constants.W_OK);
    return bavail * bsize > MEMORY_BYTES && !options.split(",").includes("noexec") ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}

// A file that fails before its first test is a failure that vitest's totals omit. So is an error outside every test,
// which shows only in the exit code; and a run of no test at all has proved nothing.
function countTests(file, code) {
  if (code === null) console.log(`vitest was stopped: all checks together have ${BUDGET_MS / 60_000} minutes.`);
  if (!existsSync(file)) return { passed: 0, failed: 1, skipped: 0 };
  const report = JSON.parse(readFileSync(file, "utf8"));
  const broken = report.testResults.filter(
    (suite) => suite.status === "failed" && suite.assertionResults.every((test) => test.status !== "failed"),
  );
  const passed = report.numPassedTests;
  const failed = report.numFailedTests + broken.length;
  if (passed + failed === 0) console.log("No test ran, which counts as one failure.");
  return {
    passed,
    failed: failed === 0 && (code !== 0 || passed === 0) ? 1 : failed,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

// A process group of its own, so that vitest's workers end with it, even one that spins in a loop. And it ends with us,
// also where we are killed or where the npm that runs us was.
function node(args, output, added = {}) {
  return new Promise((resolve) => {
    const grouped = process.platform !== "win32";
    const options = {
      cwd: root,
      env: { ...process.env, ...added },
      detached: grouped,
      stdio: ["ignore", output, output],
    };
    const child = spawn(process.execPath, args, options);
    const guardian = grouped && child.pid ? startGuardian({ signal: "KILL", folder: added.TMPDIR }) : null;
    guardian?.watch(-Number(child.pid));
    const end = () => {
      if (grouped && child.pid) process.kill(-child.pid, "SIGKILL");
      else child.kill("SIGKILL");
    };
    const watch = setInterval(() => {
      if (npm !== null && !isAlive(npm)) interrupted("SIGHUP", 1);
    }, 1_000);
    const interrupted = (_signal, number) => {
      end();
      process.exit(128 + number);
    };
    const chunks = [];
    child.stdout?.on("data", (chunk) => chunks.push(chunk));
    child.stderr?.on("data", (chunk) => chunks.push(chunk));
    const timer = setTimeout(end, Math.max(1000, BUDGET_MS - (Date.now() - startedAt)));
    for (const signal of SIGNALS) process.on(signal, interrupted);
    child.on("close", (code) => {
      clearTimeout(timer);
      clearInterval(watch);
      guardian?.dismiss();
      for (const signal of SIGNALS) process.off(signal, interrupted);
      resolve({ code, output: Buffer.concat(chunks).toString() });
    });
  });
}

/** The npm that runs us, which may stand behind a shell; null where we were started by hand. */
function npmAbove() {
  if (!process.env.npm_lifecycle_event) return null;
  const { stdout } = spawnSync("ps", ["-o", "ppid=,comm=", "-p", String(process.ppid)], { encoding: "utf8" });
  const [, above] = /^\s*(\d+)\s.*sh\s*$/.exec(stdout ?? "") ?? [];
  return Number(above ?? process.ppid);
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}

function stopwatch() {
  const from = Date.now();
  return () => `${((Date.now() - from) / 1000).toFixed(1)} s`.padStart(7);
}
