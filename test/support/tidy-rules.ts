// The house rules as functions: a file in, problems out. Every problem names file,
// line and what to do instead. `tidy.test.ts` runs them over the tree and proves each on a bad sample.

import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { reachesOf, roomOf, targetOf, whyNot, whyNotInExample } from "../../scripts/rooms.mjs";
import { phrasesIn } from "../../scripts/words.mjs";
import type { Source } from "./source.ts";

/** Judges a file by what the parser found in it. */
export type Rule = (source: Source) => string[];
/** Judges a file by its name and text alone. */
export type TextRule = (file: { readonly path: string; readonly text: string }) => string[];
/** Sizes over the limit that we live with, by `path` or `path#function`, each with the reason. */
export type Longer = Readonly<Record<string, { readonly lines: number; readonly reason: string }>>;

const FILE_LINES = 400;
const FUNCTION_LINES = 60;

/** Rooms that may use packages: drivers in a store, loaders in config, the server and the command line. */
const MAY_USE_PACKAGES = ["config", "http", "cli"];
/** Files elsewhere that load a package when it is first needed; that importing redrive does not is a test of its own. */
const LOADS_LATER: Readonly<Record<string, string>> = {
  "src/schedules/cron.ts": "croner",
  "src/system/open-telemetry.ts": "@opentelemetry/api",
};

const BANNED: readonly { use: RegExp; home: string; except?: readonly string[]; instead: string }[] = [
  {
    use: /^(set(Timeout|Interval|Immediate)|AbortSignal\.timeout|node:timers.*)$/,
    home: "system",
    instead: "the timers of src/system",
  },
  {
    use: /^(Date\.now|new Date\(\)|(node:perf_hooks\.)?performance\.now|(node:)?process\.hrtime)$/,
    home: "system",
    instead: "`now` as a parameter, or the clock of src/system",
  },
  {
    use: /^(Math\.random|(node:)?crypto\.(random\w*|getRandomValues|webcrypto))$/,
    home: "system",
    instead: "`random` or an id maker as a parameter, from src/system",
  },
  { use: /^(new .*\bWorker|node:worker_threads\.Worker)$/, home: "system", instead: "the threads of src/system" },
  { use: /^node:child_process\..*$/, home: "system", instead: "the processes of src/system" },
  { use: /^console$/, home: "cli", instead: "the logger that is passed in" },
  {
    use: /^(node:)?process\.env$/,
    home: "cli",
    // What children may see is picked by name from what is there; a child has the environment that its parent chose. Who
    // runs a process is a fact about the process, like its user and its host.
    except: ["src/system/child-environment.ts", "src/isolated-child.ts", "src/system/actor.ts"],
    instead: "an option, which src/cli fills from the environment",
  },
];

const BANNED_NAMES = /(^|-)(utils?|helpers?|common|lib|misc|types|interfaces|constants|manager|base)$/;
const MACHINE_PATH = /(?<![\w.})*])\/(?:root|home|work)\//;

const at = (path: string, line: number, message: string): string => `${path}:${line}: ${message}`;
const inSrc = (path: string): boolean => path.startsWith("src/");

function folderOf(path: string): string {
  const place = roomOf(path);
  return place === null ? "" : place.store === null ? place.room : `store/${place.store}`;
}

/** Files use their own room and those before it, and packages only where a driver or the outer rooms need them. */
export const roomOrder: TextRule = ({ path, text }) => {
  if (!inSrc(path)) return [];
  const from = folderOf(path);
  if (from === "") return [at(path, 1, whyNot(path, path) ?? "")];
  return reachesOf(path, text).flatMap((reach) => {
    const { name, line } = reach;
    if (name.startsWith(".")) {
      const target = targetOf(path, reach);
      // A URL out of src names no code: the folder of the package, or a file in it.
      const isFree = reach.kind === "url" && (from === "cli" || !target.startsWith("examples/"));
      const outside = isFree ? null : `${from} must not use ${target}`;
      const why = inSrc(target) ? whyNot(path, target) : outside;
      return why === null ? [] : [at(path, line, why)];
    }
    if (from === "core") return [at(path, line, `core is pure and must not import ${name}; take it as a parameter`)];
    if (isBuiltin(name))
      return name.startsWith("node:") ? [] : [at(path, line, `${name} is built in; write node:${name}`)];
    if (MAY_USE_PACKAGES.includes(from) || from.startsWith("store/") || LOADS_LATER[path] === name) return [];
    return [
      at(path, line, `${from} must not import ${name}; packages belong to a store, ${MAY_USE_PACKAGES.join(", ")}`),
    ];
  });
};

/** Examples use the package as any program does, their own files, and their kit. */
export const exampleReaches: TextRule = ({ path, text }) =>
  path.startsWith("examples/")
    ? reachesOf(path, text)
        .filter(({ name }) => name.startsWith("."))
        .flatMap((reach) => {
          const why = whyNotInExample(path, targetOf(path, reach));
          return why === null ? [] : [at(path, reach.line, why)];
        })
    : [];

/** A name of an exported type or class stands for one thing in the whole tree. */
export function typesDeclaredOnce(files: readonly { readonly path: string; readonly text: string }[]): string[] {
  const declared = new Map<string, string[]>();
  for (const { path, text } of files.filter((file) => inSrc(file.path)))
    for (const [, name = ""] of text.matchAll(
      /^export (?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm,
    ))
      declared.set(name, [...(declared.get(name) ?? []), path]);
  return [...declared]
    .filter(([, paths]) => paths.length > 1)
    .map(([name, paths]) => `${paths.join(" and ")} both export a type ${name}; give each its own name`);
}

/** Clock, timers, dice, threads and processes live in system; console and environment in cli. */
export const bannedUses: Rule = ({ path, uses }) => {
  const found = uses.flatMap(({ name, line }) =>
    BANNED.filter(
      ({ use, home, except }) => inSrc(path) && folderOf(path) !== home && !except?.includes(path) && use.test(name),
    ).map(({ home, instead }) => at(path, line, `${name} is only for src/${home}; use ${instead}`)),
  );
  return [...new Set(found)];
};

/** The one file that writes to terminals and logs. */
const DOOR = "src/system/output.ts";
/** What else has a `write`: files, parsers, and the children's stdin. Streams become sinks in cli/process.ts. */
const NO_DOOR: Readonly<Record<string, RegExp>> = {
  "src/cli/csv-rows.ts": /^parser\.write$/,
  "src/cli/drain-records.ts": /^out\.write$/,
  "src/cli/dlq-export.ts": /^file\.write$/,
  "src/cli/whole-file.ts": /^stream\.write$/,
  "src/cli/process.ts": /^(process\.std(out|err)|stream\.write)$/,
  "src/cli/results-out.ts": /^file\.write$/,
  "src/system/guard.ts": /^guard\.stdin\.write$/,
  "src/system/processes.ts": /^process\.std(out|err)$/,
  "src/system/subprocess.ts": /^child\.stdin\.write$/,
};

const STREAMS = /\bstd(out|err)\.write$|^(node:)?process\.(std(out|err)|emitWarning)$|^console$|^node:fs\.writeSync$/;
/** The same where streams are at hand under any name; elsewhere a `write` is one of a store. */
const PAST_THE_DOOR = /\.write(Sync)?$|^(node:)?process\.(std(out|err)|emitWarning)$|^console$/;

/** All that is written to a terminal or a log goes through `put` of the one door. */
export const oneDoor: Rule = ({ path, text, uses }) => {
  if (!inSrc(path) || path === DOOR) return [];
  const isNear = ["cli", "system"].includes(folderOf(path));
  const byName = uses
    .filter(({ name }) => (isNear ? PAST_THE_DOOR : STREAMS).test(name))
    .filter(({ name }) => !NO_DOOR[path]?.test(name.replace(/^node:/, "")))
    .map(({ name, line }) => at(path, line, `${name} writes past the door; use \`put\` of ${DOOR}`));
  const byNumber = lineRule(
    /write(File)?(Sync)?\(\s*[12],|\/dev\/(std(out|err)|tty)/,
    `writes past the door; use ${DOOR}`,
  );
  return [...new Set([...byName, ...byNumber({ path, text })])];
};

/** Files and functions stay short; an exception must match exactly, so it may only shrink. */
export const sizes =
  (longer: Longer): Rule =>
  ({ path, text, functions }) => {
    const judge = (what: string, line: number, lines: number, limit: number): string[] => {
      const known = longer[what]?.lines;
      if (lines <= limit && known === undefined) return [];
      if (known === undefined)
        return [at(path, line, `${what} has ${lines} lines, at most ${limit}; split it by subject`)];
      if (lines > known)
        return [at(path, line, `${what} grew from ${known} to ${lines} lines; exceptions only shrink`)];
      return lines < known ? [at(path, line, `${what} shrank to ${lines} lines; lower or remove its exception`)] : [];
    };
    const whole = judge(path, 1, text.trimEnd().split("\n").length, FILE_LINES);
    return [...whole, ...functions.flatMap((f) => judge(`${path}#${f.name}`, f.line, f.lines, FUNCTION_LINES))];
  };

/** Every exported declaration of src has a doc comment; overloads share that of the first. */
export const documentedExports: Rule = ({ path, exports }) =>
  exports
    .filter(({ name, documented }, i) => inSrc(path) && !documented && exports[i - 1]?.name !== name)
    .map(({ name, line }) => at(path, line, `export ${name} has no doc comment; put one sentence in /** */ before it`));

/** Every code file opens with a comment. */
export const openingComment: TextRule = ({ path, text }) =>
  /^(#!.*\n)?\s*(\/\/|\/\*)/.test(text)
    ? []
    : [at(path, 1, "opens without a comment; say in one to four sentences what this is and what it must not do")];

/** No file or folder is named for what it has in common with everything. */
export const fileNames: TextRule = ({ path }) =>
  path
    .split("/")
    .filter((part) => BANNED_NAMES.test(part.replace(/\..*$/, "")))
    .map((part) => at(path, 1, `${part} says nothing; name it for its subject`));

const lineRule =
  (bad: RegExp, message: string): TextRule =>
  ({ path, text }) =>
    text.split("\n").flatMap((line, i) => (bad.test(line) ? [at(path, i + 1, message)] : []));

/** No path that exists on one machine only. */
export const machinePaths = lineRule(MACHINE_PATH, "names a folder of one machine; use a relative or temporary path");

/** No download host in the lockfile. */
export const lockfileHosts = lineRule(/"resolved": "http/, "names a download host; run npm install with our .npmrc");

/** Every package that a package of the lockfile may want for another platform stands in it, or npm ci refuses it there. */
export const lockfileGaps: TextRule = ({ path, text }) => {
  const { packages } = JSON.parse(text) as {
    packages: Record<string, { optionalDependencies?: Record<string, string> }>;
  };
  return Object.entries(packages).flatMap(([parent, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !Object.keys(packages).some((each) => each.endsWith(`node_modules/${name}`)))
      .map((name) => `${path}: ${parent} wants ${name}; add its entry (version, cpu, os, libc) as beside it`),
  );
};

/** The change log has a place for the next entry. */
export const changeLog: TextRule = ({ path, text }) =>
  /^## \[?Unreleased\]?/m.test(text) ? [] : [at(path, 1, "has no Unreleased section; add `## [Unreleased]` on top")];

/** Docs, and comments and strings of src, name who acts in words that need no decoding; pages made from source are changed there. */
export const plainWords: TextRule = ({ path, text }) =>
  phrasesIn({ path, text }).map(({ line, phrase, instead }) => at(path, line, `says "${phrase}"; write ${instead}`));

/** Runs a copy of a built `index.js` where no package can be found, so that only Node built-ins load. */
export function loadsAlone(dist: string): string[] {
  const copy = mkdtempSync(join(tmpdir(), "redrive-alone-"));
  try {
    cpSync(dist, join(copy, "dist"), { recursive: true });
    writeFileSync(join(copy, "package.json"), '{ "type": "module" }');
    const { status, stderr } = spawnSync(process.execPath, [join(copy, "dist", "index.js")], {
      encoding: "utf8",
      timeout: 20_000,
    });
    const reason = /^.*Error.*$/m.exec(stderr)?.[0] ?? `ended with ${status}: ${stderr}`;
    return status === 0
      ? []
      : [at("dist/index.js", 1, `${reason}; load packages only in ${MAY_USE_PACKAGES.join(", ")}`)];
  } finally {
    rmSync(copy, { recursive: true });
  }
}
