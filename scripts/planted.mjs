// `npm run prove -- planted [--only TEXT]`: switches defects on again that were there once, one at a time in a copy of the
// tree, and runs the tests about each; fails unless a test notices every one of them, and its net where it names one.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { DEFECTS } from "./planted-defects.mjs";
import { root } from "./ready.mjs";

const LEFT_OUT = new Set([".git", "dist", "node_modules"]);
/** What hangs with a defect is noticed too. */
const LONGEST_MS = 10 * 60_000;

/** Plants all of them, or those whose name holds the text; returns the exit code. */
export function plantAll(args) {
  const { values } = parseArgs({ args, options: { only: { type: "string", default: "" } } });
  const chosen = DEFECTS.filter(({ name }) => name.includes(values.only));
  if (chosen.length === 0) throw new Error(`--only must be a part of a defect's name; got ${values.only}.`);
  const copy = makeCopy();
  let missed = 0;
  try {
    for (const defect of chosen) {
      const { net } = defect;
      const found = [noticed(copy, defect), ...(net ? [noticed(copy, { ...defect, only: undefined, ...net })] : [])];
      const isMissed = found.includes(null);
      if (isMissed) missed += 1;
      const by = found.map((test, place) => test ?? (place === 0 ? "no test" : "not by its net")).join("; ");
      console.log(`${isMissed ? "MISSED " : "noticed"} ${defect.name} (${by})`);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  console.log(`${chosen.length - missed} of ${chosen.length} planted defects noticed`);
  return missed === 0 ? 0 : 1;
}

/** A copy of the tree to change; the packages are those of this one. */
function makeCopy() {
  const copy = mkdtempSync(join(tmpdir(), "redrive-planted-"));
  cpSync(root, copy, { recursive: true, filter: (path) => path === root || !LEFT_OUT.has(basename(path)) });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

/** The first test that fails with the defect; null where none does. */
function noticed(copy, { file, was, is, tests, only }) {
  const path = join(copy, file);
  const code = readFileSync(path, "utf8");
  const report = join(copy, "report.json");
  rmSync(report, { force: true });
  writeFileSync(
    path,
    code.replace(was, () => is),
  );
  try {
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const args = [vitest, "run", ...tests, ...(only ? ["-t", only] : []), "--reporter=json", `--outputFile=${report}`];
    const { error } = spawnSync(process.execPath, args, { cwd: copy, stdio: "ignore", timeout: LONGEST_MS });
    if (error) return "it hangs";
    if (!existsSync(report)) throw new Error(`vitest left no report about ${tests.join(" ")}.`);
    const all = JSON.parse(readFileSync(report, "utf8")).testResults.flatMap(
      ({ assertionResults }) => assertionResults,
    );
    if (all.every(({ status }) => status !== "passed" && status !== "failed"))
      throw new Error(`No test of ${tests.join(" ")} ran.`);
    return all.find(({ status }) => status === "failed")?.fullName ?? null;
  } finally {
    writeFileSync(path, code);
  }
}
