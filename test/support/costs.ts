// Notes after each test file what it cost: the processor time of its process and of the children that ended in it, with
// what it took to start the process and to load. `npm run prove -- steady` asks for it, because beside busy loops the time
// on the clock says little.
import { appendFileSync, readFileSync } from "node:fs";
import { afterAll, expect } from "vitest";

const SPENT = Symbol.for("redrive.test.spent");
/** Linux counts the time of ended children in hundredths of a second. */
const TICKS_PER_SECOND = 100;

function spentSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + spentByChildren();
}

function spentByChildren(): number {
  if (process.platform !== "linux") return 0;
  const text = readFileSync("/proc/self/stat", "utf8");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND;
}

const shared = globalThis as { [SPENT]?: number };
const file = process.env["REDRIVE_TEST_COSTS"];

afterAll(() => {
  const spent = spentSeconds();
  const seconds = spent - (shared[SPENT] ?? 0);
  shared[SPENT] = spent;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify({ name: expect.getState().testPath, seconds })}\n`);
});
