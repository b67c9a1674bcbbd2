// Makes test/fixtures/errors.jsonl: runs the programs beside this file in many builds and writes each error that they
// threw with the label of its cause. Only `npm run prove -- corpus --make` runs it. It knows nothing of fingerprints.

import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { NODE_VARIANTS, run, runNode } from "./node-programs.mjs";
import { JAVA_VARIANTS, PYTHON_VARIANTS, pythonOf, runJava, runPython } from "./other-programs.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const FILE = join(here, "../fixtures/errors.jsonl");
/** As much of a text as Redrive keeps. */
const MOST = 8192;
/** A cause in fewer variants says little about what splits it. */
const FEWEST = 6;

/** Installs the bundlers and libraries once, runs everything, and writes the file; says what it left out. */
export async function makeCorpus() {
  const scratch = join(realpathSync(tmpdir()), "redrive-corpus");
  const tools = install(join(scratch, "tools"));
  const runs = join(scratch, "runs");
  const lines = [];
  let seed = 0;
  const each = async (language, variants, start) => {
    for (const made of variants) {
      const folder = join(runs, made.name);
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder, { recursive: true });
      const place = { programs: join(here, "programs"), tools, folder, seed: String(++seed), pythons: pythonOf };
      try {
        const { errors, prefix } = await start(made, place);
        lines.push(...errors.map((error) => lineOf(language, made, error, neutral({ made, folder, tools, prefix }))));
        console.log(`${made.name}: ${errors.length} errors`);
      } catch (error) {
        console.log(`${made.name}: left out, because ${error.message}`);
      }
    }
  };
  try {
    await each("node", NODE_VARIANTS, async (...made) => ({ errors: await runNode(...made) }));
    await each("python", PYTHON_VARIANTS, (...made) => {
      const { lines: errors, prefix } = runPython(...made);
      return { errors, prefix };
    });
    await each("java", JAVA_VARIANTS, (...made) => ({ errors: runJava(...made) }));
  } finally {
    rmSync(runs, { recursive: true, force: true });
  }
  const sorted = distinct(lines.filter((line) => line !== null)).toSorted((a, b) => compare(a.cause, b.cause));
  writeFileSync(FILE, sorted.map((line) => `${JSON.stringify(line)}\n`).join(""));
  console.log(`${sorted.length} errors of ${new Set(sorted.map(({ cause }) => cause)).size} causes`);
}

function install(tools) {
  const wanted = readFileSync(join(here, "package.json"), "utf8");
  const own = join(tools, "package.json");
  const isThere = existsSync(join(tools, "node_modules", "zod")) && readFileSync(own, "utf8") === wanted;
  if (isThere) return tools;
  mkdirSync(tools, { recursive: true });
  cpSync(join(here, "package.json"), own);
  run("npm", ["install", "--no-audit", "--no-fund", "--no-package-lock"], { cwd: tools, timeout: 600_000 });
  return tools;
}

/** Replaces the folders of this machine by those of a server. */
function neutral({ made, folder, tools, prefix }) {
  const pairs = [
    [join(tools, "node_modules"), `${made.place}/node_modules`],
    [folder, made.place],
    ...(prefix ? [[prefix, "/usr/local"]] : []),
  ];
  return (text) => pairs.reduce((now, [from, to]) => now.replaceAll(from, to), text).slice(0, MOST);
}

function lineOf(language, made, { cause, missing, ...error }, clean) {
  if (missing) console.log(`${made.name}: "${cause}" did not go wrong`);
  return missing ? null : { cause, variant: made.name, language, ...cleaned(error, clean) };
}

function cleaned({ thrown, name, message, stack, causedBy, errors, ...rest }, clean) {
  if (thrown !== undefined) return { name: typeof thrown, message: clean(String(thrown)), stack: null };
  return {
    name,
    message: clean(message),
    stack: clean(stack ?? ""),
    ...rest,
    ...(causedBy ? { causedBy: cleaned(causedBy, clean) } : {}),
    ...(errors ? { errors: errors.map((each) => cleaned(each, clean)) } : {}),
  };
}

/**
 * Without lines that say the same as another of their cause; without those that say the same as one of another cause in
 * the same build but for digits, because no reader could label them; and without causes that have few left.
 */
function distinct(lines) {
  const once = [...new Map(lines.map((line) => [textOf(line), line])).values()];
  const masked = (line) => line.variant + textOf({ ...line, cause: "" }).replace(/[0-9a-f-]*\d[0-9a-f-]*/g, "#");
  const causes = groupBy(once, masked);
  const labelled = once.filter((line) => new Set(causes.get(masked(line)).map(({ cause }) => cause)).size === 1);
  const left = groupBy(labelled, ({ cause }) => cause);
  const few = [...left].filter(([, each]) => each.length < FEWEST).map(([cause]) => cause);
  console.log(`${lines.length - once.length} lines said twice, ${once.length - labelled.length} that fit two causes`);
  if (few.length > 0) console.log(`Causes left out with fewer than ${FEWEST} variants: ${few.join("; ")}`);
  return labelled.filter(({ cause }) => !few.includes(cause));
}

function groupBy(lines, keyOf) {
  const groups = new Map();
  for (const line of lines) groups.set(keyOf(line), [...(groups.get(keyOf(line)) ?? []), line]);
  return groups;
}

const textOf = (line) => JSON.stringify({ ...line, variant: "" });
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

if (process.argv[1] === fileURLToPath(import.meta.url)) await makeCorpus();
