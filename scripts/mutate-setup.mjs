// Run before each test file of `npm run prove -- mutate`: says to the changed code which change counts, or writes down which
// changes each test passes by. What is passed by outside a test, while modules load or hooks run, counts for the whole file.
import { appendFileSync } from "node:fs";
import { afterAll, afterEach, beforeEach } from "vitest";

const { REDRIVE_MUTANT: mutant, REDRIVE_MUTANT_PASSED: file } = process.env;

if (file) {
  const outside = new Set();
  const tests = {};
  let passedBy = outside;
  let name = "";
  globalThis.$isMutant = (number) => {
    passedBy.add(number);
    return false;
  };
  beforeEach(({ task }) => {
    passedBy = new Set();
    name = task.file.name;
    tests[task.id.slice(task.file.id.length)] = passedBy;
  });
  afterEach(() => {
    passedBy = outside;
  });
  afterAll(() => {
    const found = Object.fromEntries(Object.entries(tests).map(([id, numbers]) => [id, [...numbers]]));
    appendFileSync(file, `${JSON.stringify({ file: name, outside: [...outside], tests: found })}\n`);
  });
} else {
  const number = Number(mutant);
  globalThis.$isMutant = (each) => each === number;
}
