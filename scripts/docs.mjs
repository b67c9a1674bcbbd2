// `npm run docs`: writes the rooms of src into docs/internals/architecture.md, docs/reference/options.md from the types and doc comments of src, so that every default, unit and
// bound is said once, where it is declared, and docs/reference/cli.md from the program's own help (which needs a build).
// `--check` writes nothing and fails if a page is not what the source says now. `--words` only counts the sentences of all docs
// that name no actor, and fails if there are too many.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseAst } from "vitest/node";
import { cliPage } from "./docs-cli.mjs";
import { roomsTable } from "./rooms.mjs";
import { countActorless, MOST_ACTORLESS } from "./words.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const PAGE = "docs/reference/options.md";
const ARCHITECTURE = "docs/internals/architecture.md";

/** The sections of the page: a type of the public surface, where its options are given, and a type that adds to it. */
const SECTIONS = [
  ["RedriveOptions", "createRedrive(options)"],
  ["JobOptions", "defineJob(type, options)", "WithSchema"],
  ["PolicyOptions", "createRedrive({ defaults }), defineJob(type, options)"],
  ["ServiceOptions", "createRedrive({ services: { name: options } })"],
  ["TenantOptions", "createRedrive({ tenants: { name: options } })"],
  [
    "RateOptions",
    "createRedrive({ services: { name: { rateLimit: options } } }), defineJob(type, { rateLimit: options })",
  ],
  ["BudgetOptions", "createRedrive({ services: { name: { budget: options } } })"],
  ["ExponentialOptions", "exponential(options)"],
  ["LinearOptions", "linear(options)"],
  ["MatchRule", "defineJob(type, { classify: [rule] }), retryable(fn, { classify: [rule] })"],
  ["EnqueueOptions", "redrive.enqueue(job, input, options), redrive.run(job, input, options)"],
  ["EnqueueManyOptions", "redrive.enqueueMany(job, inputs, options)"],
  ["RedriveWorkerOptions", "redrive.worker(options)"],
  ["ScheduleOptions", "redrive.schedules.set(name, options)"],
  ["JobFilter", "redrive.jobs.all(filter), .cancel(filter), .reschedule(filter, change)"],
  ["RescheduleOptions", "redrive.jobs.reschedule(target, options)"],
  ["DeadLetterFilter", "redrive.deadLetters.list(filter), .all, .retry, .remove, .stats, .export"],
  ["RetryableOptions", "retryable(fn, options), @retryable(options)"],
  [
    "BreakerOptions",
    "createRedrive({ services: { name: { breaker: options } } }), createBreaker(name, options), retryable(fn, { breaker: options })",
  ],
];

/** Types that are lists of words, and the type or constant that lists them. */
const WORDS = [
  ["PresetName", "PRESETS"],
  ["Jitter", "Jitter"],
  ["UniqueMode", "UNIQUE_MODES"],
  ["FailureClass", "FAILURE_CLASSES"],
  ["Severity", "Severity"],
  ["State", "STATES"],
  ["DeathReason", "DEATH_REASONS"],
  ["LogLevel", "LOG_LEVELS"],
  ["WhenOpen", "WHEN_OPEN"],
  ["Overlap", "OVERLAPS"],
];

const HEAD = `# Options

<!-- Made by \`node scripts/docs.mjs\` from the doc comments in src. Change those, not this page. -->

Everything is optional unless it is marked. What is out of its range is refused with the range, nothing is clamped; an
unknown name is refused with the nearest known one. Durations are texts such as \`"250ms"\`, \`"5s"\`, \`"1h30m"\`, \`"7d"\`, or
whole milliseconds. What the values mean together: [backoff and presets](../concepts/backoff-and-presets.md),
[failure classes](../concepts/failure-classes.md), [job states](../concepts/job-states.md),
[leases](../concepts/leases-and-guarantees.md).
`;

/** The page as the source says it, and the options that say nothing about themselves. */
export function optionsPage() {
  const types = readTypes(join(root, "src"));
  const undocumented = [];
  const isSection = (name) => SECTIONS.some(([section]) => section === name);
  const sections = SECTIONS.map(([name, givenTo, adding]) => {
    const added = adding === undefined ? [] : membersOf(types.find(adding), types, () => false).members;
    const { members: own, linked } = membersOf(types.find(name), types, (other) => other !== name && isSection(other));
    const members = [...added.map((member) => ({ ...member, isOptional: true })), ...own];
    for (const member of members) if (member.doc === "") undocumented.push(`${name}.${member.name}`);
    const rows = members.map(
      ({ name: option, isOptional, type, doc }) =>
        `| \`${option}\`${isOptional ? "" : " (required)"} | ${code(type)} | ${cell(doc)} |`,
    );
    return [
      `## ${name}`,
      `${types.find(name).doc}\n\nGiven to ${givenTo
        .split(/, (?=\w+\(|\w+\.\w+\(|@|\.)/)
        .map(code)
        .join(", ")}.`,
      ...linked.map(
        ({ name: other, only }) =>
          `${only ? `${only.map(code).join(", ")}` : "Everything"} of [${other}](#${other.toLowerCase()}), and:`,
      ),
      `| option | type | what it means |\n| --- | --- | --- |\n${rows.join("\n")}`,
    ].join("\n\n");
  });
  const words = WORDS.map(([name, list]) => `| \`${name}\` | ${types.words(list).map(code).join(" ")} |`);
  const values = `## Words\n\n| type | values |\n| --- | --- |\n${words.join("\n")}`;
  return { text: `${[HEAD.trimEnd(), ...sections, values].join("\n\n")}\n`, undocumented };
}

const cell = (text) => text.replaceAll("|", "\\|");
const code = (text) => `\`${cell(text)}\``;

/** Every declaration of a type or constant below a folder, by name. */
function readTypes(folder) {
  const all = new Map();
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  for (const file of files.toSorted()) {
    const source = readFileSync(join(folder, file), "utf8");
    for (const node of parseAst(source, { lang: "ts" }, file).body) {
      for (const { name, body } of declared(node.declaration ?? node)) {
        const entry = {
          name,
          body,
          source,
          file,
          isExported: node.type.startsWith("Export"),
          doc: docBefore(source, node.start),
        };
        all.set(name, [...(all.get(name) ?? []), entry]);
      }
    }
  }
  const find = (name, near) => {
    const found = all.get(name) ?? [];
    const best = found.find(({ file }) => file === near) ?? found.find(({ isExported }) => isExported);
    if (!best) throw new Error(`scripts/docs.mjs: src declares no ${name}; change the list of sections`);
    return best;
  };
  return { find, words: (name) => wordsOf(find(name).body) };
}

function declared(node) {
  if (node.type === "TSInterfaceDeclaration") return [{ name: node.id.name, body: node }];
  if (node.type === "TSTypeAliasDeclaration") return [{ name: node.id.name, body: node.typeAnnotation }];
  if (node.type !== "VariableDeclaration") return [];
  return node.declarations
    .filter(({ id }) => id.type === "Identifier")
    .map(({ id, init }) => ({ name: id.name, body: init }));
}

/** The members of a type; what belongs to a section of its own is only linked. */
function membersOf(entry, types, isLinked) {
  const linked = [];
  const follow = (name, only, near) => {
    if (!isLinked(name)) return ofNode(types.find(name, near).body, types.find(name, near));
    linked.push({ name, only });
    return [];
  };
  const ofReference = (node, from) => {
    const name = node.typeName?.name ?? node.expression?.name;
    const [first, second] = node.typeArguments?.params ?? [];
    if (name === "Partial") return ofNode(first, from).map((member) => ({ ...member, isOptional: true }));
    if (name !== "Pick" && name !== "Omit") return follow(name, null, from.file);
    const keys = wordsOf(second.type === "TSTypeReference" ? types.find(second.typeName.name, from.file).body : second);
    if (name === "Pick")
      return follow(first.typeName.name, keys, from.file).filter((member) => keys.includes(member.name));
    return ofNode(first, from).filter((member) => !keys.includes(member.name));
  };
  const ofNode = (node, from) => {
    switch (node.type) {
      case "TSInterfaceDeclaration":
        return [
          ...node.extends.flatMap((base) => ofReference(base, from)),
          ...node.body.body.map((member) => read(member, from)),
        ];
      case "TSIntersectionType":
        return node.types.flatMap((part) => ofNode(part, from));
      case "TSTypeLiteral":
        return node.members.map((member) => read(member, from));
      case "TSTypeReference":
        return ofReference(node, from);
      default:
        throw new Error(`scripts/docs.mjs: ${from.file}: cannot read the options of a ${node.type}`);
    }
  };
  return { members: ofNode(entry.body, entry), linked };
}

function read(member, { source, body }) {
  const text = (node) => source.slice(node.start, node.end);
  // A type parameter says less than what it stands for.
  const parameter = (name) => body.typeParameters?.params.find((each) => each.name.name === name)?.constraint;
  const returned = (member.returnType ?? member.typeAnnotation)?.typeAnnotation;
  const type =
    member.type === "TSMethodSignature"
      ? `(${member.params.map(text).join(", ")}) => ${text(returned)}`
      : text(parameter(text(returned)) ?? returned);
  return {
    name: member.key.name,
    isOptional: member.optional === true,
    type: type
      .replace(/\breadonly /g, "")
      .replace(/ \| undefined$/, "")
      .replace(/\s+/g, " "),
    doc: docBefore(source, member.start),
  };
}

/** The texts of a union of literals, of an array of them, or the keys of an object. */
function wordsOf(node) {
  if (node.type === "TSAsExpression" || node.type === "TSSatisfiesExpression") return wordsOf(node.expression);
  if (node.type === "TSUnionType") return node.types.map(({ literal }) => literal.value);
  if (node.type === "TSLiteralType") return [node.literal.value];
  if (node.type === "ArrayExpression") return node.elements.map(({ value }) => value);
  return node.properties.map(({ key }) => key.name);
}

/** The doc comment that ends right before this place, as one line of text. */
function docBefore(source, start) {
  const before = source.slice(0, start).trimEnd();
  const comment = before.slice(Math.max(0, before.lastIndexOf("/*")));
  if (!before.endsWith("*/") || !comment.startsWith("/**")) return "";
  return comment
    .slice(3, -2)
    .replace(/^\s*\* ?/gm, " ")
    .replace(/\s+/g, " ")
    .trim();
}

/** The page about the inside, with the rooms as they are now between its two marks. */
function withRooms(page) {
  const names = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  const files = names.map((name) => ({ path: `src/${name}`, text: readFileSync(join(root, "src", name), "utf8") }));
  return page.replace(/(<!-- rooms[^>]*-->\n)[^]*?(<!-- \/rooms -->)/, `$1\n${roomsTable(files)}\n\n$2`);
}

/** Prints how many sentences of README, CONTRIBUTING and docs name no actor, and where they are. */
function reportWords() {
  const below = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".md"),
  );
  const paths = [
    "README.md",
    "CONTRIBUTING.md",
    ...below.toSorted().map((name) => `docs/${name.replaceAll("\\", "/")}`),
  ];
  const pages = paths.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
  const { sentences, found, share } = countActorless(pages);
  for (const { path, sentence } of found) console.log(`${path}: ${sentence}`);
  const percent = (value) => `${(value * 100).toFixed(2)} %`;
  console.log(
    `${found.length} of ${sentences} sentences in ${pages.length} pages say nobody, somebody or whoever: ${percent(share)}, at most ${percent(MOST_ACTORLESS)}`,
  );
  if (share > MOST_ACTORLESS) process.exitCode = 1;
}

const isMain = import.meta.url === pathToFileURL(process.argv[1] ?? "").href;
if (isMain && process.argv.includes("--words")) reportWords();
else if (isMain) {
  const { run } = await import("../dist/cli/main.js");
  const pages = new Map([
    [PAGE, optionsPage().text],
    ["docs/reference/cli.md", await cliPage(run)],
    [ARCHITECTURE, withRooms(readFileSync(join(root, ARCHITECTURE), "utf8"))],
  ]);
  for (const [page, text] of pages) {
    const path = join(root, page);
    if (!process.argv.includes("--check")) writeFileSync(path, text);
    else if (readFileSync(path, "utf8") !== text) {
      console.error(`${page} is not what the source says; run: npm run build && npm run docs`);
      process.exitCode = 1;
    }
  }
}
