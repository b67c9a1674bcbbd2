// Budgets of the test run: what hangs fails within two minutes, which is ten times what the slowest of the others needs on a
// quiet machine. Four files at a time on two cores, because many tests wait more than they compute; and the files that take
// longest first, so that nobody waits for one of them at the end.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { BUILT, builtImports, EXTERNAL } from "./test/support/built-imports.ts";

const LONGEST = [
  "chaos/chaos",
  "conformance/postgres",
  "conformance/postgres-15",
  "worker/heartbeat",
  "worker/outage-sqlite",
  "simulation/simulation",
  "services/service-outage",
  "conformance/sqlite-threaded",
  "store/postgres/outage",
  "store/postgres/own-pool",
  "conformance/model",
  "worker/isolation",
  "schedules/schedules",
  "store/postgres/outage-network",
  "bench/smoke",
  "examples/records",
  "cli/process",
  "store/postgres/locked-keys",
  "services/service-outage-killed",
];

const ALL = "test/**/*.test.ts";
/**
 * What a file says that changes or measures its own process, or takes modules apart; it has one to itself. To read what
 * the process is, to wait, or to start and end other processes changes nothing here.
 */
const NEEDS_A_PROCESS =
  /\bvi\.(?!waitFor\b|waitUntil\b|fn\b)|(?<![-/\w])process\.(?=\w)(?!(?:arch|argv|cwd|execPath|getuid|kill|pid|platform|stdout|version|versions|env(?!\.\w+ = ))\b)|support\/(?:cpu-time|live-objects|statements)\.ts/;

/** What a file says that puts something in the place of a module, which only vitest's own loading knows. */
const REPLACES_MODULES = /\bvi\.(?:mock|doMock|resetModules)\b/;

/** The test files whose text is so. */
function filesThat(matches: (text: string) => boolean): string[] {
  const root = fileURLToPath(new URL("test/", import.meta.url));
  const names = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".test.ts"));
  return names
    .filter((name) => matches(readFileSync(root + name, "utf8")))
    .map((name) => `test/${name.replaceAll("\\", "/")}`);
}

/** The longest first; then those with a process to themselves, so that the others keep theirs to the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId, project }: TestSpecification): number => {
      const at = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return at < 0 ? LONGEST.length + Number(!project.config.isolate) : at;
    };
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b));
  }
}

const EACH = {
  pool: "forks",
  // Some programs run without `__proto__`, and nothing here needs it.
  execArgv: ["--disable-proto=delete"],
  maxWorkers: 4,
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // Waiting for what another process does, in vain only if it never does it.
  expect: { poll: { timeout: 60_000, interval: 20 } },
  setupFiles: process.env["REDRIVE_TEST_COSTS"] === undefined ? [] : ["test/support/costs.ts"],
} satisfies TestProjectInlineConfiguration["test"];

function projects(): TestProjectInlineConfiguration[] {
  // The first may follow each other in one process, where they find modules loaded that they have in common.
  const shared = filesThat((text) => !NEEDS_A_PROCESS.test(text));
  const replacing = filesThat((text) => REPLACES_MODULES.test(text));
  const built = BUILT === null ? {} : { plugins: [builtImports(BUILT)] };
  const each = BUILT === null ? EACH : { ...EACH, server: EXTERNAL };
  return [
    { ...built, test: { ...each, name: "apart", include: [ALL], exclude: [...shared, ...replacing] } },
    { ...built, test: { ...each, name: "together", include: shared, isolate: false } },
    { test: { ...EACH, name: "replacing", include: replacing } },
  ];
}

export default defineConfig({
  test: {
    ...EACH,
    include: [ALL],
    globalSetup: ["test/support/postgres-setup.ts"],
    sequence: { sequencer: LongestFirst },
    teardownTimeout: 10_000,
    // `npm run prove` names files of its own, which projects would not hear of.
    ...(process.env["REDRIVE_PROVE"] === undefined ? { projects: projects() } : {}),
  },
});
