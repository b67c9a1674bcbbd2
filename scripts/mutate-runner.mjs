// Runs tests of a copy of the library for `npm run prove -- mutate`, again and again in one process: nothing in the copy
// changes, so each file is read once. Asked by messages `{ files, mutant, passed }`; answers with what became of each test.
import { relative } from "node:path";
import { BaseSequencer, createVitest } from "vitest/node";

/** Files in the order in which they were asked for. */
class AsAsked extends BaseSequencer {
  async sort(files) {
    return files;
  }
}

const each = (name, isolate) => ({
  test: {
    name,
    isolate,
    include: ["test/**/*.test.ts"],
    setupFiles: ["scripts/mutate-setup.mjs"],
    pool: "forks",
    maxWorkers: 1,
    execArgv: ["--disable-proto=delete", "--max-old-space-size=2048"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
// A word for every test that ended, by which it is seen that none is stuck.
const reporter = { onTestCaseResult: () => process.send({ kind: "alive" }) };
const vitest = await createVitest("test", {
  config: false,
  watch: false,
  maxWorkers: 1,
  sequence: { sequencer: AsAsked },
  reporters: [reporter],
  projects: [each("apart", true), each("together", false)],
});
await vitest.standalone();
const projectOf = (name) => vitest.projects.find((project) => project.name === name);

async function run({ files, mutant, passed }) {
  process.env.REDRIVE_MUTANT = String(mutant);
  process.env.REDRIVE_MUTANT_PASSED = passed ?? "";
  const specifications = files.map(({ file, ids, pattern, isApart }) => {
    const [path, project] = [`${process.cwd()}/${file}`, projectOf(isApart ? "apart" : "together")];
    const { taskId } = project.createSpecification(path);
    if (ids) return project.createSpecification(path, { testIds: ids.map((id) => taskId + id) });
    return project.createSpecification(path, pattern ? { testNamePattern: new RegExp(pattern) } : {});
  });
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  const asked = new Set(specifications.map(({ taskId }) => taskId));
  // The answer names files of earlier runs as well.
  const modules = testModules.filter(({ id }) => asked.has(id));
  return { modules: modules.map(moduleOf), isDisturbed: unhandledErrors.length > 0 };
}

function moduleOf(module) {
  const all = [...module.children.allTests()].filter((test) => ["passed", "failed"].includes(test.result().state));
  return {
    file: relative(process.cwd(), module.moduleId),
    passed: module.state() === "passed",
    loadMs: module.diagnostic().collectDuration,
    tests: all.map((test) => ({
      id: test.id.slice(module.id.length),
      name: test.fullName,
      passed: test.result().state === "passed",
      ms: test.diagnostic()?.duration ?? 0,
    })),
  };
}

process.on("message", (asked) => {
  run(asked).then(
    (answer) => process.send({ kind: "done", ...answer }),
    (error) => {
      process.stderr.write(`${error.stack}\n`);
      process.exit(1);
    },
  );
});
process.on("disconnect", () => process.exit(1));
process.send({ kind: "ready" });
