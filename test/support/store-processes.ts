// Starts processes that use the store (store-process.mjs) and waits for what they say.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { builtModule, importBuilt } from "./built.ts";

const SCRIPT = fileURLToPath(new URL("./store-process.mjs", import.meta.url));

const MODULE = "store/sqlite/index.js";

/** A store with its thread in this process, closed with the test. */
export async function threadedStore(path: string): Promise<Store> {
  const { createSqliteStore } = await importBuilt<typeof import("../../src/store/sqlite/index.ts")>(MODULE);
  const store = createSqliteStore({ path });
  onTestFinished(() => store.close());
  return store;
}

/** What the script can do. */
export type Role = "open" | "enqueue" | "work" | "write" | "idle" | "unsendable" | "readonly";

/** A running process and everything it has said so far. */
export interface StoreProcess {
  readonly child: ChildProcess;
  readonly messages: unknown[];
  /** Resolves with its exit code, null if it was killed, and its output. */
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>;
}

/** Starts a process; it is killed with its test at the latest. */
export function startProcess(role: Role, path: string, ...rest: string[]): StoreProcess {
  const args = [builtModule(MODULE), role, path, ...rest];
  const child = fork(SCRIPT, args, { stdio: ["ignore", "pipe", "pipe", "ipc"], execArgv: [] });
  const messages: unknown[] = [];
  let output = "";
  child.on("message", (message) => messages.push(message));
  child.stdout?.on("data", (text) => (output += text));
  child.stderr?.on("data", (text) => (output += text));
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "close").then(([code]) => ({ code: code as number | null, output }));
  return { child, messages, ended };
}

/** Waits for the end of a process, which must be a good one. */
export async function succeeds({ ended, messages }: StoreProcess): Promise<unknown[]> {
  const { code, output } = await ended;
  if (code !== 0) throw new Error(`The process ended with ${code}: ${output}`);
  return messages;
}

/** Waits until a process has said so many things. */
export async function heard({ child, messages, ended }: StoreProcess, count: number): Promise<void> {
  let over = false;
  void ended.then(() => (over = true));
  while (messages.length < count && !over) await Promise.race([once(child, "message"), ended]);
  if (messages.length < count) throw new Error(`The process ended too early: ${(await ended).output}`);
}
