// The rooms of src in their one order, and who reaches into which: a file may use its own room and those before it, by
// values, by types and by the URL of a file. The tidy test holds the tree to it; `npm run docs` draws it.

import { posix } from "node:path";
import { parseAst } from "vitest/node";

/** Every room, lowest first, with what it holds. The root is the files that lie in src itself. */
export const ROOMS = [
  ["core", "the rules, as pure functions of their arguments: no clock, no dice, no IO"],
  ["system", "clock, timers, dice, ids, threads, processes, output: the only place that touches them"],
  ["store", "the contract of a store, what all stores share, and one folder for each store"],
  ["jobs", "job types: definitions, batch handlers, schemas, middleware, commands in any language"],
  ["report", "what programs and people hear of a run: events, log lines, counts"],
  ["enqueue", "the way in: new jobs, shared writes, streams, waiting for a result"],
  ["services", "breakers, rate limits, retry budgets, and what they hold back"],
  ["retryable", "retries for a function, without a queue"],
  ["upkeep", "what every worker does for the fleet: expired runs, stuck runs, retention"],
  ["worker", "one process that takes work: claim, run, settle, presence"],
  ["schedules", "jobs at set times"],
  ["metrics", "the counters of a process, and metrics as text for monitors"],
  ["operate", "what people do and look at: jobs, dead letters, breakers, runs, health"],
  ["alerts", "alerts inside: looks at the rules, and sinks that tell once for a fleet"],
  ["records", "a stream of records through one job type"],
  ["config", "the files of users: job modules, config files, store URLs"],
  ["redrive", "the root: puts the library together and chooses a store"],
  ["http", "`redrive/http`: the library over HTTP, its routes, rights and client"],
  ["batch-command", "the passes and rounds of `redrive batch`"],
  ["testing", "`redrive/testing`: a queue on a clock that tests turn"],
  ["cli", "the command line"],
];

const ORDER = ROOMS.map(([name]) => name);
/** Rooms that may choose a concrete store; elsewhere only the contract is known. */
const CHOOSE_STORES = ["config", "redrive", "testing"];

/** The room of a path below src, and the store where it belongs to one; null for a room that is not listed. */
export function roomOf(path) {
  const [, folder, next, deeper] = path.split("/");
  if (next === undefined) return { room: "redrive", store: null };
  if (!ORDER.includes(folder)) return null;
  return { room: folder, store: folder === "store" && deeper !== undefined ? next : null };
}

/** Why a file must not use another; null if it may. */
export function whyNot(path, target) {
  const from = roomOf(path);
  const to = roomOf(target);
  if (from === null) return `unknown room ${path.split("/")[1]}; give it its place in scripts/rooms.mjs`;
  if (to === null) return `${from.room} must not use ${target}; it is in no room of scripts/rooms.mjs`;
  if (ORDER.indexOf(to.room) > ORDER.indexOf(from.room))
    return `${from.room} must not use ${to.room}, which comes after it; take it as a parameter, or move one of the two`;
  if (to.store === null || to.store === from.store || CHOOSE_STORES.includes(from.room)) return null;
  return `${from.store ?? from.room} must not use store/${to.store}; use the contract, store/store.ts`;
}

/** What a file reaches: specifiers as written, each with its line and whether by value, type or URL. */
export function reachesOf(path, text) {
  const found = [];
  const lineAt = (offset) => text.slice(0, offset).split("\n").length;
  const add = (node, kind, at = node) => {
    if (typeof node?.value === "string") found.push({ name: node.value, kind, line: lineAt(at.start) });
  };
  const isOfTypes = (node) =>
    (node.importKind ?? node.exportKind) === "type" ||
    (node.specifiers?.length > 0 && node.specifiers.every((each) => (each.importKind ?? each.exportKind) === "type"));
  const walk = (node) => {
    if (typeof node !== "object" || node === null) return;
    if (Array.isArray(node)) return node.forEach(walk);
    if (/^(Import|ExportNamed|ExportAll)Declaration$/.test(node.type))
      add(node.source, isOfTypes(node) ? "type" : "value", node);
    if (node.type === "ImportExpression") add(node.source, "value", node);
    if (node.type === "TSImportType") add(node.source ?? node.argument?.literal ?? node.argument, "type", node);
    if (node.type === "NewExpression" && node.callee?.name === "URL" && node.arguments[0]?.value?.startsWith?.("."))
      add(node.arguments[0], "url", node);
    for (const [field, value] of Object.entries(node)) if (field !== "parent") walk(value);
  };
  walk(parseAst(text, { lang: "ts" }, path));
  return found;
}

/** The file that a relative specifier of a file means. A URL names what will be built, where the examples lie among the rooms. */
export function targetOf(path, { name, kind }) {
  const target = posix.join(posix.dirname(path), name);
  return kind === "url" ? target.replace(/\.js$/, ".ts").replace(/^src\/examples\//, "examples/") : target;
}

/** Why an example must not use a file; null if it may. A user's program has no more than the package, either. */
export function whyNotInExample(path, target) {
  const [own, of] = [path, target].map((each) => each.split("/").slice(0, 2).join("/"));
  if (own === of || of === "examples/kit") return null;
  return `${own} must not use ${target}; use the package redrive, or what examples/kit has`;
}

/** The graph of rooms as a Markdown table: what each holds and which it uses, with the number of files that do. */
export function roomsTable(files) {
  const rows = ROOMS.map(([room, says]) => {
    const own = files.filter(({ path }) => roomOf(path)?.room === room);
    const used = new Map();
    for (const { path, text } of own)
      for (const reach of reachesOf(path, text).filter(({ name }) => name.startsWith("."))) {
        const to = roomOf(targetOf(path, reach))?.room;
        if (to !== undefined && to !== room) used.set(to, (used.get(to) ?? new Set()).add(path));
      }
    const uses = ORDER.filter((each) => used.has(each)).map((each) => `${each} ${used.get(each).size}`);
    return `| \`${room === "redrive" ? "src/*.ts" : `src/${room}`}\` | ${says} | ${own.length} | ${uses.join(", ")} |`;
  });
  return [
    "| room | holds | files | uses, with the number of its files that do |",
    "| --- | --- | --- | --- |",
    ...rows,
  ].join("\n");
}
