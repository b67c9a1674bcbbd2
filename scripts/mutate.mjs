// `npm run prove -- mutate [--mutants N] [--seed S] [--minutes M] [--out FILE] [--in TEXT]`: changes one thing in a copy of
// the library, runs the tests about it, and says which changes no test noticed. What was judged is kept in a file, so that a
// run that was stopped goes on where it ended.
import { spawnSync } from "node:child_process";
import { appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./ready.mjs";

const FOLDERS = ["src/core", "src/worker", "src/upkeep", "src/store/memory"];
const COPIED = ["src", "test", "package.json", "tsconfig.json"];
const OUT = join(root, "node_modules/.cache/redrive-mutants.jsonl");
/** Longer than any stage takes: a mutant that hangs is one that was noticed. */
const STAGE_MS = 300_000;
/** Tests that need more than this process, or take too long to be run for every mutant. */
const LEFT_OUT = /postgres|sqlite|inject\(|child_process|processes|built|compiled|batch-kills/;
const MEMORY = ["test/conformance/memory.test.ts"];
const SWAPS = { "<": "<=", "<=": "<", ">": ">=", ">=": ">", "===": "!==", "!==": "===", "+": "-", "-": "+" };
const LOGIC = { "&&": "||", "||": "&&" };

/** Runs the mutation run; resolves to the exit code. */
export async function mutate(args) {
  const asked = readArguments(args);
  const { parseAst } = await import("vitest/node");
  const mutants = sample(allMutants(parseAst, asked.within), asked.mutants, asked.seed);
  const known = readKnown(asked.out);
  const copy = makeCopy();
  const controls = new Map();
  const until = Date.now() + asked.minutes * 60_000;
  const excuses = JSON.parse(readFileSync(join(root, "scripts/mutants.json"), "utf8"));
  const totals = { killed: 0, survived: 0, excused: 0, left: 0 };
  try {
    for (const mutant of mutants) {
      const name = nameOf(mutant);
      if (!known.has(name) && Date.now() > until) {
        totals.left++;
        continue;
      }
      const fate = known.get(name) ?? judge(copy, mutant, controls);
      if (!known.has(name)) appendFileSync(asked.out, `${JSON.stringify({ name, fate })}\n`);
      const excuse = fate === "survived" ? excuses[name] : undefined;
      totals[excuse ? "excused" : fate === "survived" ? "survived" : "killed"]++;
      const why = excuse ? ` (${excuse})` : "";
      process.stdout.write(`${fate.padEnd(9)} ${mutant.file}:${mutant.line}  ${mutant.was} → ${mutant.is}${why}\n`);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  const { killed, survived, excused, left } = totals;
  const share = killed + survived === 0 ? 100 : Math.round((100 * killed) / (killed + survived));
  const rest = left > 0 ? `, ${left} left for the next run` : "";
  process.stdout.write(`${killed} killed, ${survived} survived (${share} % killed), ${excused} of no matter${rest}\n`);
  return 0;
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
  return { mutants, seed, minutes, out, within: values.in ?? "" };
}

/** The fates of mutants that were judged before, by name. */
function readKnown(file) {
  if (!existsSync(file)) return new Map();
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return new Map(lines.map((line) => JSON.parse(line)).map(({ name, fate }) => [name, fate]));
}

/** Names hold no line numbers: a change elsewhere in the file makes no other mutant of it. */
function nameOf({ file, was, is, around }) {
  return `${file} | ${around} | ${was} → ${is}`;
}

function allMutants(parseAst, within) {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .map((name) => `${folder}/${name}`)
      .filter((name) => name.endsWith(".ts") && name.includes(within)),
  );
  return files.sort().flatMap((file) => mutantsOf(parseAst, file, readFileSync(join(root, file), "utf8")));
}

/** Every change of one file. */
function mutantsOf(parseAst, file, code) {
  const found = [];
  const add = (start, end, is) => {
    const was = code.slice(start, end).replace(/\s+/g, " ");
    const from = code.lastIndexOf("\n", start) + 1;
    const around = code.slice(from, code.indexOf("\n", start)).trim();
    const line = code.slice(0, start).split("\n").length;
    found.push({
      file,
      start,
      end,
      line,
      around,
      was: was.slice(0, 80),
      is: is.replace(/\s+/g, " ").slice(0, 80),
      text: is,
    });
  };
  const visit = (node) => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (typeof node !== "object" || node === null || typeof node.type !== "string") return;
    // Types do nothing at run time.
    if (/^TS(?!As|NonNull|Satisfies)/.test(node.type) || node.type === "ImportDeclaration") return;
    mutateNode(node, code, add);
    for (const value of Object.values(node)) visit(value);
  };
  visit(parseAst(code, { lang: "ts" }).body);
  return found;
}

function mutateNode(node, code, add) {
  const textOf = ({ start, end }) => code.slice(start, end);
  if (["IfStatement", "ConditionalExpression", "WhileStatement"].includes(node.type)) {
    add(node.test.start, node.test.end, `!(${textOf(node.test)})`);
  }
  const swap = node.type === "BinaryExpression" ? SWAPS[node.operator] : LOGIC[node.operator];
  if ((node.type === "BinaryExpression" || node.type === "LogicalExpression") && swap) {
    const [left, right] = [textOf(node.left), textOf(node.right)];
    const isText = node.operator === "+" && /["'`]/.test(left + right);
    if (!isText) add(node.start, node.end, `(${left} ${swap} ${right})`);
  }
  const call = node.type === "ExpressionStatement" && (node.expression.argument ?? node.expression);
  if (call && call.type === "CallExpression" && textOf(call.callee) !== "super") add(node.start, node.end, ";");
  if (node.type === "Literal" && typeof node.value === "boolean") add(node.start, node.end, String(!node.value));
  if (node.type === "Literal" && typeof node.value === "number") add(node.start, node.end, String(node.value + 1));
}

/** So many of them, the same for the same seed. */
function sample(all, count, seed) {
  let state = seed >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const drawn = all.map((mutant) => ({ mutant, at: random() })).sort((a, b) => a.at - b.at);
  return drawn.slice(0, count).map(({ mutant }) => mutant);
}

/** A copy of the tree to change; the packages are those of this one. */
function makeCopy() {
  const copy = mkdtempSync(join(tmpdir(), "redrive-mutate-"));
  for (const name of COPIED) cpSync(join(root, name), join(copy, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  const test = { include: ["test/**/*.test.ts"], pool: "forks", maxWorkers: 2, testTimeout: 60_000 };
  writeFileSync(join(copy, "vitest.config.mjs"), `export default ${JSON.stringify({ test })};\n`);
  return copy;
}

/** Runs the tests about a mutant, the closest first, until one fails that does not fail without it. */
function judge(copy, mutant, controls) {
  const path = join(copy, mutant.file);
  const code = readFileSync(path, "utf8");
  const mutated = code.slice(0, mutant.start) + mutant.text + code.slice(mutant.end);
  const isSound = (stage) => {
    const key = stage.join(" ");
    if (!controls.has(key)) controls.set(key, passes(copy, stage));
    return controls.get(key);
  };
  for (const stage of stagesFor(copy, mutant.file)) {
    writeFileSync(path, mutated);
    const noticed = !passes(copy, stage);
    writeFileSync(path, code);
    if (noticed && isSound(stage)) return "killed";
  }
  return "survived";
}

/** The tests that name the file, then the rest of its folder, then the memory store and a few seeds of the simulation. */
function stagesFor(copy, file) {
  const folder = join(
    "test",
    dirname(file)
      .replace(/^src\//, "")
      .replace("store/memory", "conformance"),
  );
  const all = existsSync(join(copy, folder))
    ? readdirSync(join(copy, folder)).filter((name) => name.endsWith(".test.ts"))
    : [];
  const texts = all.map((name) => ({ path: join(folder, name), text: readFileSync(join(copy, folder, name), "utf8") }));
  const quick = texts.filter(({ path, text }) => !LEFT_OUT.test(path) && !LEFT_OUT.test(text));
  const named = quick.filter(
    ({ path, text }) => text.includes(`/${basename(file)}`) || path.includes(basename(file, ".ts")),
  );
  const others = quick.filter((each) => !named.includes(each));
  const seeds = ["test/simulation/simulation.test.ts", "-t", "hold on memory for seeds 1 to 50"];
  return [named.map(({ path }) => path), others.map(({ path }) => path), MEMORY, seeds].filter(
    (stage) => stage.length > 0,
  );
}

function passes(copy, stage) {
  const args = [join(copy, "node_modules/vitest/vitest.mjs"), "run", "--bail", "1", "--reporter", "dot", ...stage];
  return spawnSync(process.execPath, args, { cwd: copy, stdio: "ignore", timeout: STAGE_MS }).status === 0;
}
