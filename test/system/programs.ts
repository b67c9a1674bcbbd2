// Programs of users, run as they run them: by Node, with the built library, in a process of their own that is killed
// with its test at the latest.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { builtModule } from "../support/built.ts";
import { testFolder } from "../support/database-file.ts";

/** How a program ended. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: string | null;
  readonly out: string;
  readonly err: string;
  /** From its start to its end. */
  readonly tookMs: number;
  /** From the last thing it said to its end. */
  readonly lingeredMs: number;
}

/** Writes a module with the library's address in place of `redrive`; answers its path. */
export function writeProgram(name: string, text: string, folder = testFolder()): string {
  const path = join(folder, name);
  writeFileSync(path, withLibrary(text));
  return path;
}

/** The same text with the library's address in place of `redrive`. */
export function withLibrary(text: string): string {
  return text.replaceAll('from "redrive"', `from ${JSON.stringify(builtModule("index.js"))}`);
}

/** Runs Node with these arguments and waits for its end; kills it when it takes too long. */
export async function runNode(args: readonly string[], withinMs = 60_000): Promise<ProgramEnd> {
  const from = performance.now();
  const child = spawn(process.execPath, [...args], { stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  let err = "";
  let spokeAt = from;
  child.stdout.on("data", (text) => {
    out += text;
    spokeAt = performance.now();
  });
  child.stderr.on("data", (text) => (err += text));
  const timer = setTimeout(() => child.kill("SIGKILL"), withinMs);
  onTestFinished(() => void child.kill("SIGKILL"));
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  clearTimeout(timer);
  const now = performance.now();
  return { code, signal, out, err, tookMs: now - from, lingeredMs: now - spokeAt };
}
