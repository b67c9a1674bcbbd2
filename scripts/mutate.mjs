// `npm run prove -- mutate [--mutants N] [--seed S] [--minutes M] [--out FILE] [--in TEXT]`: changes one thing in a copy of
// the library, runs the tests about it, and says which changes no test noticed. What was judged is kept in a file, so that a
// run that was stopped goes on where it ended.
import { fork } from "node:child_process";
import { appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, normalize } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./ready.mjs";

const FOLDERS = ["src/core", "src/services", "src/worker", "src/upkeep", "src/store/memory"];
const COPIED = ["src", "test", "package.json", "tsconfig.json"];
const OUT = join(root, "node_modules/.cache/redrive-mutants.jsonl");
/** Longer than a test may take: where none ends for so long, the change made a loop without end, which is noticed. */
const SILENT_MS = 100_000;
/** Tests that need more than this process and SQLite, or take too long to be run for every change. */
const LEFT_OUT = /from ".*(postgres|child_process|processes|compiled|batch-kills)|inject\(|importBuilt|threadedWorld/;
const SEEDS = { files: ["test/simulation/simulation.test.ts"], pattern: "hold on memory for seeds 1 to 50" };
const SWAPS = { "<": "<=", "<=": "<", ">": ">=", ">=": ">", "===": "!==", "!==": "===", "+": "-", "-": "+" };
const LOGIC = { "&&": "||", "||": "&&" };

/** Runs the mutation run; resolves to the exit code. */
export async function mutate(args) {
  const asked = readArguments(args);
  const { parseAst } = await import("vitest/node");
  const excuses = JSON.parse(readFileSync(join(root, "scripts/mutants.json"), "utf8"));
  refuseOld(excuses, new Set(allMutants(parseAst, "").map(nameOf)));
  const mutants = sample(allMutants(parseAst, asked.within), asked.mutants, asked.seed);
  const known = readKnown(asked.out);
  const copy = makeCopy();
  const tests = readTests(copy);
  const runner = new Runner(copy);
  const controls = new Map();
  const until = Date.now() + asked.minutes * 60_000;
  const totals = { killed: 0, survived: 0, excused: 0, left: 0 };
  try {
    for (const mutant of mutants) {
      const name = nameOf(mutant);
      const excuse = excuses[name];
      if (excuse === undefined && !known.has(name) && Date.now() > until) {
        totals.left++;
        continue;
      }
      // What is known to be of no matter is not run.
      const fate = excuse ? "excused" : (known.get(name) ?? (await judge(copy, runner, mutant, tests, controls)));
      if (!excuse && !known.has(name)) appendFileSync(asked.out, `${JSON.stringify({ name, fate })}\n`);
      totals[fate]++;
      const why = excuse ? ` (${excuse})` : "";
      process.stdout.write(`${fate.padEnd(9)} ${mutant.file}:${mutant.line}  ${mutant.was} → ${mutant.is}${why}\n`);
    }
  } finally {
    await runner.end();
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
  return { mutants, seed, minutes, out, within: values.in ?? "" };
}

/** The fates of mutants that were judged before, by name. */
function readKnown(file) {
  if (!existsSync(file)) return new Map();
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return new Map(lines.map((line) => JSON.parse(line)).map(({ name, fate }) => [name, fate]));
}

/** Names hold no line numbers, only the place in the line: a change elsewhere in the file makes no other mutant of it. */
function nameOf({ file, was, is, around, at }) {
  return `${file} | ${around} | ${at}: ${was} → ${is}`;
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
    const whole = code.slice(from, code.indexOf("\n", start));
    const around = whole.trim();
    const line = code.slice(0, start).split("\n").length;
    found.push({
      file,
      start,
      end,
      line,
      around,
      at: start - from - whole.indexOf(around),
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
    const [left, right] = [node.left, node.right].map((each) => within(each, textOf(each)));
    const isText = node.operator === "+" && /["'`]/.test(left + right);
    if (!isText) add(node.start, node.end, `(${left} ${swap} ${right})`);
  }
  const call = node.type === "ExpressionStatement" && (node.expression.argument ?? node.expression);
  if (call && call.type === "CallExpression" && textOf(call.callee) !== "super") add(node.start, node.end, ";");
  if (node.type === "Literal" && typeof node.value === "boolean") add(node.start, node.end, String(!node.value));
  if (node.type === "Literal" && typeof node.value === "number") add(node.start, node.end, String(node.value + 1));
}

/** An operand, in parentheses where the operator beside it may bind more tightly than its own. */
function within({ type }, text) {
  return /^(Binary|Logical|Conditional|Assignment|Arrow)/.test(type) ? `(${text})` : text;
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
  cpSync(join(root, "scripts/mutate-runner.mjs"), join(copy, "mutate-runner.mjs"));
  return copy;
}

/** Runs the tests about a mutant, the closest first, until one fails that does not fail without it. */
async function judge(copy, runner, mutant, tests, controls) {
  const code = readFileSync(join(copy, mutant.file), "utf8");
  const mutated = code.slice(0, mutant.start) + mutant.text + code.slice(mutant.end);
  const runWith = (text, files, pattern) => {
    runner.change(mutant.file, text);
    return runner.run(files, pattern);
  };
  const isSound = async (files, pattern) => {
    const key = files.join(" ");
    if (!controls.has(key)) controls.set(key, (await runWith(code, files, pattern)).passed);
    return controls.get(key);
  };
  try {
    for (const { files, pattern } of stagesFor(tests, mutant.file)) {
      for (let left = files; left.length > 0; ) {
        const { passed, isStuck, failed } = await runWith(mutated, left, pattern);
        if (isStuck) return "killed";
        if (passed) break;
        // A file that fails but once, or by itself, says nothing: the stage goes on without it.
        const alone = failed === null ? left : [failed];
        const again = await runWith(mutated, alone, pattern);
        if (!again.passed && (await isSound(alone, pattern))) return "killed";
        left = left.filter((file) => !alone.includes(file));
      }
    }
    return "survived";
  } finally {
    runner.change(mutant.file, code);
  }
}

/** Every test that can be run for every mutant, with all files that it loads. */
function readTests(copy) {
  const imported = new Map();
  const importsOf = (file) => {
    if (!imported.has(file)) {
      const text = existsSync(join(copy, file)) ? readFileSync(join(copy, file), "utf8") : "";
      const named = [...text.matchAll(/from "(\.[^"]+)"/g)].map(([, name]) => normalize(join(dirname(file), name)));
      imported.set(file, named);
    }
    return imported.get(file);
  };
  const closure = (file) => {
    const loaded = new Map([[file, 0]]);
    for (const [each, far] of loaded)
      for (const next of importsOf(each)) if (!loaded.has(next)) loaded.set(next, far + 1);
    return loaded;
  };
  return readdirSync(join(copy, "test"), { recursive: true, encoding: "utf8" })
    .map((name) => `test/${name}`)
    .filter((file) => file.endsWith(".test.ts") && file !== SEEDS.files[0])
    .filter((file) => !/postgres|planted|checker/.test(file) && !LEFT_OUT.test(readFileSync(join(copy, file), "utf8")))
    .sort()
    .map((file) => ({ file, loaded: closure(file) }));
}

/** The tests that name the file, then all others that load it, the nearest first, then a few seeds of the simulation. */
function stagesFor(tests, file) {
  const name = basename(file, ".ts");
  const folder = dirname(file).replace(/^src/, "test").replace("store/memory", "conformance");
  const about = tests.filter(({ loaded }) => loaded.has(file));
  const isNamed = (test) =>
    test.loaded.get(file) === 1 || basename(test.file).includes(name) || test.file === `${folder}/memory.test.ts`;
  const far = (test) => test.loaded.get(file) + (dirname(test.file) === folder ? 0 : 100);
  const others = about.filter((test) => !isNamed(test)).sort((a, b) => far(a) - far(b));
  const stages = [about.filter(isNamed), others].map((stage) => ({ files: stage.map((test) => test.file) }));
  return [...stages, SEEDS].filter(({ files }) => files.length > 0);
}

/** The process that runs the tests of a copy; started again where a mutant made it hang. */
class Runner {
  #copy;
  #child = null;
  /** Files that were changed since it last looked. */
  #changed = new Set();

  constructor(copy) {
    this.#copy = copy;
  }

  change(file, text) {
    writeFileSync(join(this.#copy, file), text);
    this.#changed.add(file);
  }

  /** Runs some tests until one fails; says which file that was in, where one was. */
  async run(tests, pattern) {
    this.#child ??= await this.#start();
    const changed = [...this.#changed];
    this.#changed.clear();
    this.#child.send({ tests, pattern, changed });
    const answer = await this.#answer("done");
    if (answer === null) await this.end();
    return answer === null ? { passed: false, isStuck: true, failed: null } : { ...answer, isStuck: false };
  }

  async end() {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const isOver = new Promise((resolve) => child.once("exit", resolve));
    // With everything that it started.
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    await isOver;
  }

  async #start() {
    this.#child = fork(join(this.#copy, "mutate-runner.mjs"), { cwd: this.#copy, detached: true, stdio: "ignore" });
    await this.#answer("ready");
    return this.#child;
  }

  /** The next message of this kind; null where nothing was heard for too long. */
  #answer(kind) {
    return new Promise((resolve, reject) => {
      const end = (answer) => {
        clearTimeout(silence);
        this.#child.off("message", hear).off("exit", isGone);
        resolve(answer);
      };
      const isGone = () => reject(new Error("The process that runs the tests has ended."));
      const hear = (message) => (message.kind === kind ? end(message) : silence.refresh());
      const silence = setTimeout(() => end(null), SILENT_MS);
      this.#child.on("message", hear).once("exit", isGone);
    });
  }
}
