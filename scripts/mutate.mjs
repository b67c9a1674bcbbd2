// `npm run prove -- mutate [--mutants N] [--seed S] [--minutes M] [--out FILE] [--in TEXT]`: changes one thing in a copy of
// the library, runs the tests that pass by it, and says which changes no test noticed. What was judged is kept in a file, so
// that a run that was stopped goes on where it ended.
import { createHash } from "node:crypto";
import { appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { allMutants, nameOf, sample, weave } from "./mutate-changes.mjs";
import { MutateTests } from "./mutate-tests.mjs";
import { root } from "./ready.mjs";

const COPIED = [
  "src",
  "test",
  "examples",
  "scripts",
  "bin",
  "package.json",
  "tsconfig.json",
  "tsconfig.build.json",
  "tsconfig.examples.json",
];
const OUT = join(root, "node_modules/.cache/redrive-mutants.jsonl");
/** Tests that need more than this process and SQLite, or read the source, or take too long to be run for every change. */
const LEFT_OUT = /from ".*(postgres|child_process|processes|compiled|batch-kills)|inject\(|importBuilt|threadedWorld/;
const LEFT_OUT_NAMES = /postgres|planted|checker|test\/(tidy|docs|scripts|package|bench|chaos)/;
/** A few seeds of the simulation, not all. */
const PATTERNS = { "test/simulation/simulation.test.ts": "hold on memory for seeds 1 to 50" };
/** What a file says that takes modules apart or changes its process. */
const NEEDS_A_PROCESS = /\bvi\.|\bprocess\./;
/** How many files are tried out in one go. */
const TOGETHER = 8;
/** The tests about a change are run in lots: the first so long, by what they need without it, each further one twice that. */
const [FIRST_MS, LONGEST_MS] = [1_000, 30_000];

/** Runs the mutation run; resolves to the exit code. */
export async function mutate(args) {
  const asked = readArguments(args);
  const { parseAst } = await import("vitest/node");
  const excuses = JSON.parse(readFileSync(join(root, "scripts/mutants.json"), "utf8"));
  refuseOld(excuses, new Set(allMutants(parseAst, "").map(nameOf)));
  const mutants = sample(allMutants(parseAst, asked.within), asked.mutants, asked.seed).map((mutant, index) => ({
    ...mutant,
    number: index + 1,
    name: nameOf(mutant),
    excuse: excuses[nameOf(mutant)],
  }));
  const copy = makeCopy(mutants);
  const key = keyOf(copy);
  const known = readKnown(asked.out);
  const isKnown = ({ name, excuse }) => excuse !== undefined || known.get(name)?.key === key;
  const tests = Array.from({ length: Math.min(2, availableParallelism()) }, () => new MutateTests(copy));
  const until = Date.now() + asked.minutes * 60_000;
  const totals = { killed: 0, survived: 0, excused: 0, left: 0 };
  const say = ({ file, line, was, is }, fate, why) => {
    totals[fate]++;
    if (fate === "left") return;
    process.stdout.write(`${fate.padEnd(9)} ${file}:${line}  ${was} → ${is}${why ? ` (${why})` : ""}\n`);
  };
  try {
    for (const mutant of mutants.filter(isKnown)) {
      // What is known to be of no matter is not run.
      if (mutant.excuse) say(mutant, "excused", mutant.excuse);
      else say(mutant, known.get(mutant.name).fate, known.get(mutant.name).by);
    }
    const unknown = mutants.filter((mutant) => !isKnown(mutant));
    const map = unknown.length > 0 ? await readMap(copy, tests, asked.map) : [];
    await inParallel(tests, unknown, async (runner, mutant) => {
      if (Date.now() > until) return say(mutant, "left");
      const by = await noticedBy(runner, mutant, lotsFor(map, mutant, known.get(mutant.name)?.by));
      const fate = by === null ? "survived" : "killed";
      appendFileSync(asked.out, `${JSON.stringify({ name: mutant.name, fate, by, key })}\n`);
      say(mutant, fate, by);
    });
  } finally {
    await Promise.all(tests.map((each) => each.end()));
    rmSync(copy, { recursive: true, force: true });
  }
  const { killed, survived, excused, left } = totals;
  const share = killed + survived === 0 ? 100 : Math.round((100 * killed) / (killed + survived));
  const rest = left > 0 ? `, ${left} left for the next run` : "";
  process.stdout.write(`${killed} killed, ${survived} survived (${share} % killed), ${excused} of no matter${rest}\n`);
  return 0;
}

/** An excuse for a change that is not possible any more would hide what has taken its place. */
function refuseOld(excuses, names) {
  const old = Object.keys(excuses).filter((name) => !names.has(name));
  if (old.length === 0) return;
  throw new Error(`scripts/mutants.json must name changes that are possible; remove these:\n${old.join("\n")}`);
}

function readArguments(args) {
  const options = Object.fromEntries(
    ["mutants", "seed", "minutes", "out", "in"].map((name) => [name, { type: "string" }]),
  );
  const { values } = parseArgs({ args, options });
  const number = (name, usual) => {
    const text = values[name] ?? usual;
    if (/^[0-9]{1,9}$/.test(text) && Number(text) > 0) return Number(text);
    throw new Error(`--${name} must be a whole number from 1 to 999999999; got ${text}.`);
  };
  const out = values.out ?? OUT;
  mkdirSync(dirname(out), { recursive: true });
  const [mutants, seed, minutes] = [number("mutants", "100"), number("seed", "1"), number("minutes", "60")];
  return { mutants, seed, minutes, out, map: `${String(out)}.map`, within: values.in ?? "" };
}

/** What became of mutants that were judged before, by name; the last word counts. */
function readKnown(file) {
  if (!existsSync(file)) return new Map();
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return new Map(lines.map((line) => JSON.parse(line)).map((judged) => [judged.name, judged]));
}

/** A copy of the tree with all changes in it; the packages are those of this one. */
function makeCopy(mutants) {
  const copy = mkdtempSync(join(tmpdir(), "redrive-mutate-"));
  for (const name of COPIED) cpSync(join(root, name), join(copy, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  for (const file of new Set(mutants.map((mutant) => mutant.file))) {
    const changes = mutants.filter((mutant) => mutant.file === file);
    writeFileSync(join(copy, file), weave(readFileSync(join(copy, file), "utf8"), changes));
  }
  return copy;
}

/** The same for the same library, tests and changes: what was found out holds as long as these stay. */
function keyOf(copy) {
  const hash = createHash("sha256");
  for (const folder of ["src", "test"]) {
    for (const name of readdirSync(join(copy, folder), { recursive: true, encoding: "utf8" }).sort()) {
      if (/\.(ts|mjs|json)$/.test(name)) hash.update(name).update(readFileSync(join(copy, folder, name)));
    }
  }
  return hash.digest("hex").slice(0, 16);
}

async function inParallel(tests, items, work) {
  const queue = [...items];
  const one = async (runner) => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(runner, item);
  };
  await Promise.all(tests.map(one));
}

/** Which changes each test passes by, and how long it takes without any; found out once and kept in a file. */
async function readMap(copy, tests, file) {
  const key = keyOf(copy);
  if (existsSync(file)) {
    const kept = JSON.parse(readFileSync(file, "utf8"));
    if (kept.key === key) return kept.map;
  }
  const files = testFiles(copy);
  process.stdout.write(`Running ${files.length} test files without a change, to see which tests pass by which.\n`);
  const map = [];
  const lots = Array.from({ length: Math.ceil(files.length / TOGETHER) }, (_, at) =>
    files.slice(at * TOGETHER, (at + 1) * TOGETHER),
  );
  await inParallel(tests, lots, async (runner, lot) => map.push(...(await runner.passedBy(lot))));
  writeFileSync(file, JSON.stringify({ key, map }));
  return map;
}

function testFiles(copy) {
  return readdirSync(join(copy, "test"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => ({ file: `test/${name}`, text: readFileSync(join(copy, "test", name), "utf8") }))
    .filter(({ file, text }) => !LEFT_OUT_NAMES.test(file) && !LEFT_OUT.test(text))
    .map(({ file, text }) => ({ file, pattern: PATTERNS[file], isApart: NEEDS_A_PROCESS.test(text) }))
    .sort((a, b) => (a.file < b.file ? -1 : 1));
}

/** The tests that pass by a change in the order in which they are tried, the cheap and the near first. */
function lotsFor(map, { number, file }, first) {
  const folder = dirname(file).replace(/^src/, "test").replace("store/memory", "conformance");
  const rank = (test) => {
    if (test.file === first) return 0;
    const isNear = basename(test.file).includes(basename(file, ".ts")) || dirname(test.file) === folder;
    return test.ms * (isNear ? 0.2 : 1);
  };
  const passing = map
    .map(({ outside, tests, loadMs, ...test }) => {
      const own = outside.includes(number) ? tests : tests.filter(({ passes }) => passes.includes(number));
      const ms = own.reduce((sum, each) => sum + each.ms, loadMs);
      return { ...test, ids: own.map(({ id }) => id), ms };
    })
    .filter(({ ids }) => ids.length > 0)
    .sort((a, b) => rank(a) - rank(b));
  const lots = [];
  let [left, size] = [0, FIRST_MS];
  for (const test of passing) {
    if (left <= 0) {
      lots.push([]);
      left = size;
      size = Math.min(size * 2, LONGEST_MS);
    }
    lots.at(-1).push(test);
    left -= test.ms;
  }
  return lots;
}

/** The first test file that fails with the mutant, twice; null where none does. */
async function noticedBy(runner, mutant, lots) {
  for (const lot of lots) {
    for (let left = lot; left.length > 0; ) {
      const { isStuck, failed } = await runner.failing(left, mutant.number);
      if (isStuck) return "it hangs";
      if (failed.length === 0) break;
      const again = await runner.failing(failed, mutant.number);
      if (again.isStuck || again.failed.length > 0) return (again.failed[0] ?? failed[0]).file;
      // What fails but once says nothing: the lot goes on without it.
      left = left.filter((test) => !failed.includes(test));
    }
  }
  return null;
}
