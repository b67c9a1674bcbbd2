// `npm run prove -- steady [--runs N] [--busy N] [-- vitest arguments]`: the test command several times in a row, while
// loops that do nothing keep processors busy beside it. Says what failed in each run, which files took longest, and which
// cost most: the time of a processor is the same however busy the machine is.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./ready.mjs";

const SHOWN = 15;
/** No run of the test command takes longer; a loop ends then, or with us. */
const RUN_MS = 30 * 60_000;
const LOOP = `const until = Date.now() + ${RUN_MS}; const parent = process.ppid;
while (Date.now() < until && process.ppid === parent) for (let n = 0; n < 1e7; n++);`;

/** Runs it all and prints a line for each run; returns the exit code, which is 0 if every run was green. */
export async function steady(args) {
  const { values, positionals } = parseArgs({
    args,
    options: { runs: { type: "string", default: "5" }, busy: { type: "string", default: "2" } },
    allowPositionals: true,
  });
  const [runs, busy] = [count("--runs", values.runs, 1), count("--busy", values.busy, 0)];
  const folder = mkdtempSync(join(tmpdir(), "redrive-steady-"));
  const took = new Map();
  const cost = new Map();
  let green = 0;
  try {
    for (let run = 1; run <= runs; run++) {
      const { code, seconds, closing, said, files, costs } = await once(join(folder, `${run}.json`), busy, positionals);
      if (code === 0) green += 1;
      console.log(`run ${run} of ${runs}, ${busy} busy beside it: ${Math.round(seconds)} s, ${closing}`);
      if (code !== 0) console.log(said);
      for (const { name, ms, failures } of files) {
        took.set(name, Math.max(took.get(name) ?? 0, ms));
        for (const failure of failures) console.log(`  FAILED ${name} › ${failure}`);
      }
      for (const each of costs) cost.set(each.name, Math.max(cost.get(each.name) ?? 0, each.seconds));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  show(
    "The slowest files, each in its longest run:",
    [...took].map(([name, ms]) => [name, ms / 1_000]),
  );
  const whole = [...cost.values()].reduce((sum, each) => sum + each, 0);
  show(`What files cost of a processor, of ${Math.round(whole)} s in all without servers:`, [...cost]);
  console.log(`${green} of ${runs} runs green`);
  return green === runs ? 0 : 1;
}

function show(title, files) {
  console.log(title);
  for (const [name, seconds] of files.toSorted(([, a], [, b]) => b - a).slice(0, SHOWN))
    console.log(`${seconds.toFixed(1).padStart(7)} s  ${name}`);
}

function count(name, text, least) {
  if (!/^\d{1,2}$/.test(text) || Number(text) < least) {
    throw new Error(`${name} must be a whole number from ${least} to 99; got ${text}.`);
  }
  return Number(text);
}

async function once(report, busy, args) {
  const loops = Array.from({ length: busy }, () => spawn(process.execPath, ["-e", LOOP], { stdio: "ignore" }));
  const from = performance.now();
  try {
    const spent = `${report}.costs`;
    const { code, said } = await testCommand(report, spent, args);
    const closing = said.split("\n").at(-1);
    return {
      code,
      said,
      closing,
      seconds: (performance.now() - from) / 1_000,
      files: filesOf(report),
      costs: costsOf(spent),
    };
  } finally {
    for (const loop of loops) loop.kill("SIGKILL");
  }
}

function testCommand(report, spent, args) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [join(root, "scripts", "test.mjs"), ...args], {
      cwd: root,
      env: { ...process.env, REDRIVE_TEST_REPORT: report, REDRIVE_TEST_COSTS: spent },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let text = "";
    child.stdout.on("data", (chunk) => (text += chunk));
    child.on("close", (code) => resolve({ code, said: text.trimEnd() }));
  });
}

/** Of each file what it cost, as its process noted it. */
function costsOf(spent) {
  if (!existsSync(spent)) return [];
  const lines = readFileSync(spent, "utf8").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line)).map(({ name, seconds }) => ({ name: relative(root, name), seconds }));
}

/** Of each file how long it took, and what failed in it; nothing where vitest left no report. */
function filesOf(report) {
  if (!existsSync(report)) return [];
  return JSON.parse(readFileSync(report, "utf8")).testResults.map(({ name, startTime, endTime, ...file }) => ({
    name: relative(root, name),
    ms: endTime - startTime,
    failures: file.assertionResults
      .filter(({ status }) => status === "failed")
      .map(({ fullName, failureMessages }) => `${fullName}: ${failureMessages[0]?.split("\n")[0] ?? ""}`)
      .concat(file.message ? [file.message.split("\n")[0]] : []),
  }));
}
