// Defects of `redrive batch` and of commands that run jobs, in the form of planted-defects.mjs.

/** Each with the tests that notice it. */
export const BATCH_DEFECTS = [
  {
    name: "a kept command that is shutting down gets the next batch",
    file: "src/jobs/subprocess.ts",
    was: "if (!kept.child.isEnding) return kept;",
    is: "return kept;",
    tests: ["test/jobs/kept-commands.test.ts"],
  },
  {
    name: "batch --env takes a name that is not set",
    file: "src/cli/batch-plan.ts",
    was: "if (env[name] === undefined) throw",
    is: "if (name === undefined) throw",
    tests: ["test/cli/batch.test.ts"],
    only: "refuses",
  },
  {
    name: "an input that is too long for a variable is set all the same",
    file: "src/jobs/subprocess.ts",
    was: "const VARIABLE_BYTES = 131_072;",
    is: "const VARIABLE_BYTES = 1e9;",
    tests: ["test/jobs/subprocess.test.ts"],
  },
];
