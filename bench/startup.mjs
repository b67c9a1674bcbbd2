// What the command line costs before it does anything: processor time (user and system) of whole processes as a multiple
// of plain node, medians. They take turns, so that a busy moment hits all.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { against, inScratch, median, row } from "./measure.mjs";

const short = process.argv.includes("--short");
const ROUNDS = short ? 2 : 15;
const CLI = fileURLToPath(new URL("../bin/redrive.js", import.meta.url));

/** Milliseconds of processor time; only a shell can tell those of a child without a word in the child. */
function cpuMs(args) {
  const script = 'TIMEFORMAT="%3U %3S"; time "$@" >/dev/null';
  const call = ["-c", script, "bash", process.execPath, ...args];
  const { status, stderr, error } = spawnSync("bash", call, { encoding: "utf8", timeout: 60_000 });
  if (status !== 0) throw error ?? new Error(`node ${args.join(" ")} ended with ${status}: ${stderr}`);
  const seconds = stderr.trim().split("\n").at(-1).replaceAll(",", ".").split(" ");
  return seconds.reduce((sum, each) => sum + Number(each), 0) * 1_000;
}

await inScratch(async (folder) => {
  const store = `sqlite:${join(folder, "jobs.db")}`;
  const calls = {
    "node -e 0": ["-e", "0"],
    "redrive --version": [CLI, "--version"],
    "redrive --help": [CLI, "--help"],
    "redrive enqueue, one job": [CLI, "enqueue", "hello", "{}", "--store", store],
    "redrive stats": [CLI, "stats", "--store", store],
  };
  const goals = { "redrive --version": 2, "redrive --help": 2, "redrive enqueue, one job": 3.3 };
  const costs = Object.fromEntries(Object.keys(calls).map((name) => [name, []]));
  // The first round is for the file, and for the disk cache.
  for (let round = -1; round < ROUNDS; round++)
    for (const [name, args] of Object.entries(calls)) {
      const ms = cpuMs(args);
      if (round >= 0) costs[name].push(ms);
    }
  const plain = median(costs["node -e 0"]).middle;
  for (const [name, values] of Object.entries(costs)) {
    const { middle } = median(values);
    const [times, goal] = [middle / plain, goals[name]];
    const said = goal === undefined ? "" : against(`<= ${goal} × plain node`, times <= goal);
    row(name, `${Math.round(middle)} ms CPU, ${times.toFixed(2)} ×`, said);
  }
});
