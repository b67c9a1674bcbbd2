// Starts processes with a worker (worker-process.mjs) on a SQLite file, and waits for what they say and leave behind.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { Job } from "../../src/core/job.ts";
import type { NewJob } from "../../src/core/new-job.ts";
import type { ServiceOptions } from "../../src/core/service.ts";
import { openStore } from "../../src/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import type { WorkerCounts } from "../../src/report/reporter.ts";
import type { WorkerOptions } from "../../src/worker/settings.ts";
import { builtModule } from "./built.ts";
import { testPath } from "./database-file.ts";
import { newJob } from "./new-job.ts";
import { threadedStore } from "./store-processes.ts";

/** Ten times what the longest wait takes on a quiet machine. */
const PATIENCE_MS = 60_000;
const SQLITE = "store/sqlite/index.js";
const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** What a process says. */
export interface Message {
  readonly ready?: string;
  readonly pid?: number;
  readonly event?: string;
  readonly id?: string;
  readonly line?: string;
  readonly level?: string;
  readonly at?: number;
  readonly stopped?: WorkerCounts;
  readonly drained?: WorkerCounts;
  readonly share?: number;
  readonly heapGrowth?: number;
  readonly rssGrowth?: number;
}

/** A worker in a process of its own. */
export interface WorkerProcess {
  readonly child: ChildProcess;
  readonly messages: Message[];
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>;
  /** Waits for the first message that fits, also among those that came already. */
  hears(fits: (message: Message) => boolean, withinMs?: number): Promise<Message>;
  /** Waits until it has told so many events of this kind. */
  tells(event: string, count: number, withinMs?: number): Promise<void>;
  order(name: "stop" | "drain" | "cost", argument: number): void;
}

/** How a process is started. */
export interface Start {
  readonly options?: WorkerOptions;
  readonly services?: Readonly<Record<string, ServiceOptions>>;
  /** A host of its own makes its death invisible to `isAlive`. */
  readonly host?: string;
  readonly isolate?: boolean;
  readonly unstarted?: boolean;
  readonly level?: "debug";
  readonly env?: NodeJS.ProcessEnv;
}

/** A SQLite file, a store on it in this process, and the way to start workers on it. */
export interface Site {
  readonly path: string;
  readonly store: Store;
  start(how?: Start): Promise<WorkerProcess>;
  add(type: string, payload?: unknown, overrides?: Partial<NewJob>): Promise<string>;
  read(id: string): Promise<Job>;
  /** What jobs have noted, in order. */
  notes(): Record<string, unknown>[];
}

/** A site of its own for each test, on the store of the address where one is given; every process is killed with it. */
export async function createSite(path = testPath(), address?: string): Promise<Site> {
  const store = address === undefined ? await threadedStore(path) : await openStore(address);
  const built = builtModule(SQLITE).slice(0, -SQLITE.length);
  const notes = `${path}.notes`;
  const site: Site = {
    path,
    store,
    async start({ env, unstarted = false, ...how } = {}) {
      const args = [JSON.stringify({ path, address, options: {}, ...how }), ...(unstarted ? ["unstarted"] : [])];
      const own = { REDRIVE_BUILT: built, REDRIVE_JOBS: here("./worker-jobs.mjs"), REDRIVE_NOTES: notes };
      const child = fork(here("./worker-process.mjs"), args, {
        stdio: ["ignore", "pipe", "pipe", "ipc"],
        execArgv: ["--expose-gc"],
        env: { ...process.env, ...own, ...env },
      });
      const started = follow(child);
      await started.hears(({ ready }) => ready !== undefined);
      return started;
    },
    async add(type, payload = {}, overrides = {}) {
      const job = newJob({ type, payload: JSON.stringify(payload), ...overrides });
      await store.enqueue([job]);
      return job.id;
    },
    async read(id) {
      const [job] = await store.get([id]);
      if (!job) throw new Error(`There is no job ${id}.`);
      return job;
    },
    notes() {
      appendFileSync(notes, "");
      const lines = readFileSync(notes, "utf8").split("\n").filter(Boolean);
      return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    },
  };
  return site;
}

function follow(child: ChildProcess): WorkerProcess {
  const messages: Message[] = [];
  let output = "";
  child.on("message", (message) => void messages.push(message as Message));
  child.stdout?.on("data", (text) => (output += text));
  child.stderr?.on("data", (text) => (output += text));
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "close").then(([code]) => ({ code: code as number | null, output }));
  let over = false;
  void ended.then(() => (over = true));

  const until = async (done: () => boolean, what: string, withinMs: number): Promise<void> => {
    const patience = new AbortController();
    const timer = setTimeout(() => patience.abort(), withinMs);
    try {
      while (!done()) {
        if (over) throw new Error(`The process ended before ${what}: ${output}`);
        // Whoever of the two does not come first lets go of the child, or every message would leave listeners behind.
        const round = new AbortController();
        const stop = { signal: AbortSignal.any([patience.signal, round.signal]) };
        const heard = Promise.race([once(child, "message", stop), once(child, "close", stop)]);
        await heard.finally(() => round.abort());
      }
    } catch (error) {
      if (!patience.signal.aborted) throw error;
      const told = messages.slice(-20).map((message) => JSON.stringify(message));
      throw new Error(`Waited ${withinMs} ms in vain for ${what}; it said:\n${told.join("\n")}\n${output}`);
    } finally {
      clearTimeout(timer);
    }
  };
  return {
    child,
    messages,
    ended,
    async hears(fits, withinMs = PATIENCE_MS) {
      await until(() => messages.some(fits), String(fits), withinMs);
      return messages.find(fits) as Message;
    },
    tells: (event, count, withinMs = PATIENCE_MS) =>
      until(() => messages.filter((message) => message.event === event).length >= count, `${count} ${event}`, withinMs),
    order: (name, argument) => void child.send([name, argument]),
  };
}
