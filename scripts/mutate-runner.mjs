// Runs tests of a copy of the library for `npm run prove -- mutate`, again and again in one process: what does not change is
// read once. Asked by messages `{ tests, changed }`; answers each with the first file that failed, if one did.
import { relative } from "node:path";
import { BaseSequencer, createVitest } from "vitest/node";

/** Files in the order in which they were asked for. */
class AsAsked extends BaseSequencer {
  async sort(files) {
    return files;
  }
}

// A word for every test that ended, by which it is seen that none is stuck.
const reporter = { onTestCaseResult: () => process.send({ kind: "alive" }) };
const vitest = await createVitest("test", {
  config: false,
  watch: false,
  include: ["test/**/*.test.ts"],
  pool: "forks",
  maxWorkers: 2,
  execArgv: ["--disable-proto=delete", "--max-old-space-size=2048"],
  testTimeout: 30_000,
  sequence: { sequencer: AsAsked },
  reporters: [reporter],
});
await vitest.standalone();

/** How many files are run before it is seen whether one failed; a run that is cancelled midway would disturb the next. */
const TOGETHER = 4;

const hasPassed = (file) => file.state() === "passed";

async function run({ tests, pattern, changed }) {
  for (const file of changed) vitest.invalidateFile(`${process.cwd()}/${file}`);
  if (pattern) vitest.setGlobalTestNamePattern(pattern);
  else vitest.resetGlobalTestNamePattern();
  const project = vitest.getRootProject();
  const files = tests.map((test) => project.createSpecification(`${process.cwd()}/${test}`));
  for (let at = 0; at < files.length; at += TOGETHER) {
    const some = files.slice(at, at + TOGETHER);
    const { testModules, unhandledErrors } = await vitest.runTestSpecifications(some);
    // The answer names files of earlier runs as well.
    const bad = some.find(({ moduleId }) => !testModules.some((file) => file.moduleId === moduleId && hasPassed(file)));
    if (bad) return { passed: false, failed: relative(process.cwd(), bad.moduleId) };
    if (unhandledErrors.length > 0) return { passed: false, failed: null };
  }
  return { passed: true, failed: null };
}

process.on("message", (asked) => {
  run(asked).then(
    (answer) => process.send({ kind: "done", ...answer }),
    () => process.exit(1),
  );
});
process.on("disconnect", () => process.exit(1));
process.send({ kind: "ready" });
