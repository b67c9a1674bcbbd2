// `npm run docs`: makes the reference pages from the types and doc comments of src and from the program's own help (which
// needs a build), and writes the rooms of src into docs/internals/architecture.md. So every default, unit and bound is
// said once, where it is declared. `--check` writes nothing and fails if a page is not what the source says now. `--words`
// only counts the sentences of all docs, and of the comments in src, that name no actor, and fails if there are too many.

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { apiPage, contextPage, eventsPage } from "./docs-api.mjs";
import { cliPage } from "./docs-cli.mjs";
import { httpPage, pathsFile } from "./docs-http.mjs";
import { optionsPage } from "./docs-options.mjs";
import { exportsOf, readTypes } from "./declarations.mjs";
import { roomsTable } from "./rooms.mjs";
import { countActorless, MOST_ACTORLESS } from "./words.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const ARCHITECTURE = "docs/internals/architecture.md";

/** Every file below a folder with this ending, by path. */
function filesBelow(folder, ending) {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  const paths = names.filter((name) => name.endsWith(ending)).map((name) => `${folder}/${name.replaceAll("\\", "/")}`);
  return paths.toSorted().map(read);
}

const read = (path) => ({ path, text: readFileSync(join(root, path), "utf8") });

/** The page about the inside, with the rooms as they are now between its two marks. */
function withRooms(page) {
  const table = roomsTable(filesBelow("src", ".ts"));
  return page.replace(/(<!-- rooms[^>]*-->\n)[^]*?(<!-- \/rooms -->)/, `$1\n${table}\n\n$2`);
}

/** Prints how many sentences of README, CONTRIBUTING and docs, and of the comments in src, name no actor, and where. */
function reportWords() {
  const pages = [read("README.md"), read("CONTRIBUTING.md"), ...filesBelow("docs", ".md")];
  report(pages, `sentences in ${pages.length} pages`);
  const sources = filesBelow("src", ".ts");
  report(sources, `sentences in the comments of ${sources.length} source files`);
}

function report(files, what) {
  const { sentences, found, share } = countActorless(files);
  for (const { path, sentence } of found) console.log(`${path}: ${sentence}`);
  const percent = (value) => `${(value * 100).toFixed(2)} %`;
  console.log(
    `${found.length} of ${sentences} ${what} say nobody, somebody or whoever: ${percent(share)}, at most ${percent(MOST_ACTORLESS)}`,
  );
  if (share > MOST_ACTORLESS) process.exitCode = 1;
}

/** Makes every page from source; with `--check`, only compares. */
async function makePages() {
  const { run } = await import("../dist/cli/main.js");
  const types = readTypes(join(root, "src"));
  const mute = new Set();
  const silent = (name) => mute.add(name);
  const [{ PREFIX, ROUTES }, { openApi }, { STATUS }] = await Promise.all(
    ["routes", "openapi", "http-error"].map((name) => import(`../dist/http/${name}.js`)),
  );
  const { values } = exportsOf(join(root, "src/index.ts"));
  const pages = new Map([
    ["docs/reference/options.md", optionsPage(types, silent)],
    ["docs/reference/api.md", apiPage(types, silent, values)],
    ["docs/reference/context.md", contextPage(types, silent)],
    ["docs/reference/events.md", eventsPage(types, silent)],
    ["docs/reference/cli.md", await cliPage(run)],
    ["docs/reference/http.md", httpPage(ROUTES, openApi, PREFIX, STATUS)],
    ["src/http/paths.ts", pathsFile(ROUTES)],
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
