// Processes that take part in a benchmark. The task travels as JSON in the arguments; the actor prints `ready`, begins
// when it reads `go`, and prints its figures as one line of JSON. Node built-ins only, because peers use this file too.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** No actor may take longer than this, whatever it does, unless its task says so. */
const LONGEST_MS = 600_000;

/** Now in epoch milliseconds with fractions, comparable between the processes of one host. */
export function stamp() {
  return performance.timeOrigin + performance.now();
}

/** Inside an actor: `play(task, go, told)` prepares, awaits `go()`, measures and returns figures; `told` is the end. */
export async function actor(play) {
  const task = JSON.parse(process.argv[2]);
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const told = { next: () => lines.next() };
  const go = () => {
    process.stdout.write("ready\n");
    return lines.next();
  };
  const figures = await play(task, go, told);
  await new Promise((written) => process.stdout.write(`${JSON.stringify(figures)}\n`, written));
  process.exit(0);
}

/** Starts an actor of this folder. `ready` and `figures` reject if it ends before. */
export function startActor(module, task) {
  const program = fileURLToPath(new URL(module, import.meta.url));
  const child = spawn(process.execPath, [program, JSON.stringify(task)], { stdio: ["pipe", "pipe", "inherit"] });
  const timer = setTimeout(() => child.kill("SIGKILL"), task.longestMs ?? LONGEST_MS);
  const ready = deferred();
  const figures = deferred();
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line === "ready") ready.resolve();
    else if (line.startsWith("{")) figures.resolve(JSON.parse(line));
    else process.stderr.write(`${line}\n`);
  });
  child.stdin.on("error", () => undefined);
  child.on("close", (code, signal) => {
    clearTimeout(timer);
    const error = new Error(`${module} ended with ${signal ?? code} before it was done.`);
    ready.reject(error);
    figures.reject(error);
  });
  return {
    child,
    ready: ready.promise,
    figures: figures.promise,
    say: (line) => child.stdin.write(`${line}\n`),
  };
}

/** Starts actors, lets them begin together when all are ready, and returns their figures. */
export async function playTogether(...parts) {
  const actors = parts.map(([module, task]) => startActor(module, task));
  await Promise.all(actors.map(({ ready }) => ready));
  for (const { say } of actors) say("go");
  return Promise.all(actors.map(({ figures }) => figures));
}

/** Plays one actor alone. */
export async function play(module, task) {
  return (await playTogether([module, task]))[0];
}

function deferred() {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  parts.promise.catch(() => undefined);
  return parts;
}
