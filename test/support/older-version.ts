// Processes of an older version of the schema, for proofs of an upgrade: the library as that version left it, unpacked from
// test/fixtures/version-N.tgz. So a proof needs no history of the repository and no old release from a registry.
import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { onTestFinished } from "vitest";
import type { FrozenVersion } from "./fixtures.ts";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const PROGRAM = at("older-version-process.mjs");

/** The address of the library of a version; gone with the test. */
export function olderLibrary(version: FrozenVersion): string {
  // Below node_modules, so that packages are found from there.
  const cache = at("../../node_modules/.cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, `redrive-version-${version}-`));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { status, stderr } = spawnSync("tar", ["-xzf", at(`../fixtures/version-${version}.tgz`), "-C", folder]);
  if (status !== 0) throw new Error(`tar did not unpack version ${version}: ${String(stderr)}`);
  return pathToFileURL(join(folder, "dist", "index.js")).href;
}

/** A process of an older version. */
export interface OldProcess {
  /** Says something to it. */
  say(message: "stop" | "retry"): void;
  /** The next message that has this field. */
  answer<T>(field: string): Promise<T>;
}

/** Starts a process of an older version on a store; it ends with the test at the latest. */
export function startOld(library: string, url: string, role: "fill" | "work", numbers: object): OldProcess {
  const args = [library, url, role, JSON.stringify(numbers)];
  const child: ChildProcess = fork(PROGRAM, args, { execArgv: [], stdio: "inherit" });
  onTestFinished(() => void child.kill("SIGKILL"));
  const said: Record<string, unknown>[] = [];
  child.on("message", (message) => said.push(message as Record<string, unknown>));
  const isOver = once(child, "exit").then(([code]) => code as number | null);
  return {
    say: (message) => void child.send(message),
    async answer<T>(field: string): Promise<T> {
      for (;;) {
        const found = said.find((message) => field in message);
        if (found) return found[field] as T;
        const next = once(child, "message").then(() => null);
        const code = await Promise.race([next, isOver.then((ended) => ({ ended }))]);
        if (code !== null && !said.some((message) => field in message))
          throw new Error(`The process of the older version ended with ${code.ended} and did not say ${field}.`);
      }
    },
  };
}
