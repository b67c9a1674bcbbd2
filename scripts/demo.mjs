// Runs the demo from dist: `node scripts/demo.mjs [--json] [--quiet] [--jobs N] [--seed N] [--file FILE]`.
import { parseArgs } from "node:util";
import { demo } from "../dist/cli/demo.js";

const { values } = parseArgs({
  options: {
    json: { type: "boolean" },
    quiet: { type: "boolean" },
    jobs: { type: "string" },
    seed: { type: "string" },
    file: { type: "string" },
  },
});
const { jobs, seed, ...rest } = values;
const numbers = { ...(jobs && { jobs: Number(jobs) }), ...(seed && { seed: Number(seed) }) };
const { stdout, stderr, env } = process;
process.exitCode = await demo({ ...rest, ...numbers }, { stdout, stderr, env });
