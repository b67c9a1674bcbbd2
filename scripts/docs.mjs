// `npm run docs`: makes the reference pages from the types and doc comments of src and from the program's own help (which
// needs a build), and writes the rooms of src into docs/internals/architecture.md. So every default, unit and bound is
// said once, where it is declared. `--check` writes nothing and fails if a page is not what the source says now. `--words`
// only counts the sentences of all docs that name no actor, and fails if there are too many.

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { apiPage, contextPage, eventsPage } from "./docs-api.mjs";
import { cliPage } from "./docs-cli.mjs";
import { optionsPage } from "./docs-options.mjs";
import { exportsOf, readTypes } from "./declarations.mjs";
import { roomsTable } from "./rooms.mjs";
import { countActorless, MOST_ACTORLESS } from "./words.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const ARCHITECTURE = "docs/internals/architecture.md";

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

/** Makes every page from source; with `--check`, only compares. */
async function makePages() {
  const { run } = await import("../dist/cli/main.js");
  const types = readTypes(join(root, "src"));
  const mute = new Set();
  const silent = (name) => mute.add(name);
  const { values } = exportsOf(join(root, "src/index.ts"));
  const pages = new Map([
    ["docs/reference/options.md", optionsPage(types, silent)],
    ["docs/reference/api.md", apiPage(types, silent, values)],
    ["docs/reference/context.md", contextPage(types, silent)],
    ["docs/reference/events.md", eventsPage(types, silent)],
    ["docs/reference/cli.md", await cliPage(run)],
    [ARCHITECTURE, withRooms(readFileSync(join(root, ARCHITECTURE), "utf8"))],
  ]);

  const fail = (text) => {
    console.error(text);
    process.exitCode = 1;
  };
  for (const name of mute) fail(`${name} has no doc comment; write one in src, with its default, unit and bounds`);
  for (const [page, text] of pages) {
    const path = join(root, page);
    if (!process.argv.includes("--check")) writeFileSync(path, text);
    else if (!existsSync(path) || readFileSync(path, "utf8") !== text)
      fail(`${page} is not what the source says; run: npm run build && npm run docs`);
  }
}

if (process.argv.includes("--words")) reportWords();
else await makePages();
