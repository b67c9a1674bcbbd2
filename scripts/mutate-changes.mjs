// The changes that `npm run prove -- mutate` tries: how they are found in the source, sampled, and written into a copy of it.
// All changes of a sample stand in one copy, each beside what was there before; a number says which one counts.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./ready.mjs";

const FOLDERS = ["src/core", "src/services", "src/worker", "src/upkeep", "src/store/memory"];
const SWAPS = { "<": "<=", "<=": "<", ">": ">=", ">=": ">", "===": "!==", "!==": "===", "+": "-", "-": "+" };
const LOGIC = { "&&": "||", "||": "&&" };
/** Asks which change counts: mutate-setup.mjs says so in a worker of the tests, the environment in its threads and children. */
const ASK = `
function $isMutant(number) {
  globalThis.$isMutant ??= ((own) => (each) => each === own)(Number(process.env.REDRIVE_MUTANT));
  return globalThis.$isMutant(number);
}
`;

/** Names hold no line numbers, only the place in the line: a change elsewhere in the file makes no other mutant of it. */
export function nameOf({ file, was, is, around, at }) {
  return `${file} | ${around} | ${at}: ${was} → ${is}`;
}

/** Every change of the files whose path holds the text. */
export function allMutants(parseAst, within) {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .map((name) => `${folder}/${name}`)
      .filter((name) => name.endsWith(".ts") && name.includes(within)),
  );
  return files
    .toSorted((a, b) => (a < b ? -1 : 1))
    .flatMap((file) => mutantsOf(parseAst, file, readFileSync(join(root, file), "utf8")));
}

/** So many of them, the same for the same seed. */
export function sample(all, count, seed) {
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

/** The code of one file with all these changes in it; `number` is what a change is known by when the code runs. */
export function weave(code, mutants) {
  const outermost = mutants.toSorted((a, b) => a.start - b.start || b.end - a.end);
  return `// @ts-nocheck\n${part(code, 0, code.length, outermost)}${ASK}`;
}

function part(code, from, to, mutants) {
  let text = "";
  let at = from;
  for (let rest = mutants; rest.length > 0; ) {
    const [mutant, ...others] = rest;
    const inner = others.filter(({ end }) => end <= mutant.end);
    text += code.slice(at, mutant.start) + either(mutant, part(code, mutant.start, mutant.end, inner));
    at = mutant.end;
    rest = others.slice(inner.length);
  }
  return text + code.slice(at, to);
}

function either({ kind, number, text }, before) {
  if (kind === "call") return `{ if (!$isMutant(${number})) ${before} }`;
  const chosen = `$isMutant(${number}) ? (${text}) : (${before})`;
  return kind === "key" ? `[${chosen}]` : `(${chosen})`;
}

/** A text on one line; one that is cut says how long it is, by which it differs from others that begin like it. */
function short(text) {
  const line = text.replace(/\s+/g, " ");
  return line.length > 80 ? `${line.slice(0, 80)}… ${line.length}` : line;
}

/** Every change of one file. */
function mutantsOf(parseAst, file, code) {
  const found = [];
  const add = (start, end, text, kind = "value") => {
    const from = code.lastIndexOf("\n", start) + 1;
    const whole = code.slice(from, code.indexOf("\n", start));
    const around = whole.trim();
    const line = code.slice(0, start).split("\n").length;
    const at = start - from - whole.indexOf(around);
    found.push({ file, kind, start, end, line, around, at, was: short(code.slice(start, end)), is: short(text), text });
  };
  const visit = (node, kind) => {
    if (Array.isArray(node)) return node.forEach((each) => visit(each));
    if (typeof node !== "object" || node === null || typeof node.type !== "string") return;
    // Types do nothing at run time.
    if (/^TS(?!As|NonNull|Satisfies)/.test(node.type) || node.type === "ImportDeclaration") return;
    mutateNode(node, code, (start, end, text, own) => add(start, end, text, own ?? kind));
    const isNamed = "key" in node && !node.computed;
    for (const [name, value] of Object.entries(node)) visit(value, isNamed && name === "key" ? "key" : undefined);
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
  if (call && call.type === "CallExpression" && textOf(call.callee) !== "super") add(node.start, node.end, ";", "call");
  if (node.type === "Literal" && typeof node.value === "boolean") add(node.start, node.end, String(!node.value));
  if (node.type === "Literal" && typeof node.value === "number") add(node.start, node.end, String(node.value + 1));
}

/** An operand, in parentheses where the operator beside it may bind more tightly than its own. */
function within({ type }, text) {
  return /^(Binary|Logical|Conditional|Assignment|Arrow)/.test(type) ? `(${text})` : text;
}
