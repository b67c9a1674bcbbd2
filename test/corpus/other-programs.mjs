// The Python and Java programs of the corpus: other folders, versions, moved lines, without sources, from archives.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "./node-programs.mjs";

const variant = (name, release, place, rest) => ({ name, release, place, ...rest });
/** Each variant has its release, its folder on the server, its Python, and its arguments. */
export const PYTHON_VARIANTS = [
  variant("python", 1, "/srv/etl", { python: "3.11", args: ["run.py"] }),
  variant("python-optimised", 1, "/opt/etl", { python: "3.11", args: ["-O", "run.py"] }),
  variant("python-next", 2, "/srv/releases/42/etl", { python: "3.11", args: ["run.py"] }),
  variant("python-3.12", 1, "/app", { python: "3.12", args: ["run.py"] }),
  variant("python-3.13-next", 2, "/usr/src/app", { python: "3.13", args: ["run.py"] }),
  variant("python-module", 2, "/var/lib/etl", { python: "3.10", args: ["-m", "run"] }),
  variant("python-compiled", 1, "/opt/loads", { python: "3.12", args: ["run.pyc"], compiled: true }),
];
/** Each variant has its release, its folder, its package, its way of calling, and how it is compiled and started. */
export const JAVA_VARIANTS = [
  variant("java", 1, "/srv/billing", { root: "com.acme.shop", way: "loop" }),
  variant("java-next", 2, "/opt/billing", { root: "com.acme.shop", way: "loop" }),
  variant("java-queue", 1, "/srv/billing", { root: "com.acme.shop", way: "queue" }),
  variant("java-jar-next", 2, "/app", { root: "com.acme.shop", way: "queue", jar: true }),
  variant("java-repackaged", 1, "/usr/src/app", { root: "io.northwind.billing", way: "loop" }),
  variant("java-no-lines", 2, "/opt/billing", { root: "com.acme.shop", way: "loop", flags: ["-g:none"] }),
  variant("java-repackaged-jar", 2, "/app", { root: "shaded.com.acme.shop", way: "queue", jar: true }),
];

/** Runs one Python variant in the folder; the lines that it printed, and the folder of its library. */
export function runPython(made, { programs, folder, seed, pythons }) {
  cpSync(join(programs, "python"), folder, { recursive: true });
  const unrelated =
    '\n\ndef duration_text(seconds):\n    """How long something took, for the log."""\n    return f"{seconds} s"\n';
  if (made.release === 2) insert(join(folder, "etl"), /\n\n\n/, `${unrelated}\n\n`);
  const env = { ...process.env, CORPUS_SEED: seed, CORPUS_FOLDER: join(folder, "data"), PYTHONDONTWRITEBYTECODE: "1" };
  const python = pythons(made.python);
  if (made.compiled) {
    run(python, ["-m", "compileall", "-b", "-q", "."], { cwd: folder, env: { ...process.env } });
    for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
      if (name.endsWith(".py")) rmSync(join(folder, name));
    }
  }
  const [program, ...rest] = made.args.toReversed();
  const path = program === "run" ? program : join(folder, program);
  const lines = run(python, [...rest.toReversed(), path], { cwd: folder, env })
    .trim()
    .split("\n");
  const read = lines.map((line) => JSON.parse(line));
  return { lines: read.filter(({ cause }) => cause !== undefined), prefix: read.at(-1).prefix };
}

/** Compiles and runs one Java variant in the folder; the errors that it printed. */
export function runJava(made, { programs, folder, seed }) {
  const sources = join(folder, "src", ...made.root.split("."));
  mkdirSync(sources, { recursive: true });
  cpSync(join(programs, "java/com/acme/shop"), sources, { recursive: true });
  const files = readdirSync(sources).map((name) => join(sources, name));
  for (const file of files) {
    writeFileSync(file, readFileSync(file, "utf8").replace("package com.acme.shop", `package ${made.root}`));
  }
  const unrelated = '\n  static String durationText(long seconds) {\n    return seconds + " s";\n  }\n';
  if (made.release === 2) insert(sources, /(?<=\n(?:public )?class \w+ \{)\n/, `${unrelated}\n`);
  run("javac", [...(made.flags ?? []), "-d", "classes", ...files], { cwd: folder });
  if (made.jar) run("jar", ["--create", "--file", "app.jar", "-C", "classes", "."], { cwd: folder });
  const env = { ...process.env, CORPUS_SEED: seed, CORPUS_WAY: made.way, CORPUS_FOLDER: join(folder, "data") };
  const output = run("java", ["-cp", made.jar ? "app.jar" : "classes", `${made.root}.Run`], { cwd: folder, env });
  return output
    .split("\u0001")
    .slice(1)
    .map((part) => part.split("\n\u0002"))
    .map(([cause, name, message, stack]) => ({ cause, name, message, stack: stack.trimEnd() }));
}

/** Moves the lines of every file below the first place that matches. */
function insert(folder, place, text) {
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    writeFileSync(file, readFileSync(file, "utf8").replace(place, text));
  }
}

/** The program of a version of Python: from the folder of pyenv where there is one, else from the path. */
export function pythonOf(version) {
  const folder = join(process.env.PYENV_ROOT ?? join(process.env.HOME ?? "", ".pyenv"), "versions");
  const found = existsSync(folder) ? readdirSync(folder).find((name) => name.startsWith(`${version}.`)) : undefined;
  return found === undefined ? `python${version}` : join(folder, found, "bin", `python${version}`);
}
