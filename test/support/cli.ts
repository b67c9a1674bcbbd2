// The command line without a process: arguments and a world of the test's own in, exit code and text out. The library is
// the built one, because its store thread is.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { Io, StopSignal } from "../../src/cli/io.ts";
import { importBuilt } from "./built.ts";
import { openBeside, testFolder } from "./database-file.ts";

const { run } = await importBuilt<typeof import("../../src/cli/main.ts")>("cli/main.js");

/** The world of one call. */
export interface World {
  readonly stdin?: string | readonly (string | Uint8Array)[];
  readonly env?: Record<string, string>;
  /** Columns of the terminal that all three streams are; none where absent. */
  readonly columns?: number;
  readonly cwd?: string;
  /** Called with the way to send a signal. */
  readonly onReady?: (send: (signal: StopSignal) => void) => void;
  /** Hears what is written on stderr. */
  readonly onWords?: (text: string) => void;
}

/** What became of a call. */
export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A folder of its own with the command line in it. */
export interface Bench {
  readonly folder: string;
  readonly run: (args: readonly string[], world?: World) => Promise<Outcome>;
  /** The same with `--json`; the answer must be exactly one document. */
  readonly json: (args: readonly string[], world?: World) => Promise<Outcome & { readonly document: Document }>;
  readonly write: (name: string, text: string) => string;
  /** Jobs in the file, by state; all zero where there is no file. */
  readonly sql: (query: string) => unknown[][];
}

/** JSON as tests look at it. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Document = any;

/** Runs one call. */
export async function runCli(args: readonly string[], cwd: string, world: World = {}): Promise<Outcome> {
  let out = "";
  let err = "";
  const terminal = world.columns === undefined ? {} : { isTTY: true, columns: world.columns };
  const { stdin = [] } = world;
  const chunks = typeof stdin === "string" ? [stdin] : stdin;
  const io: Io = {
    stdout: { write: (text) => (out += text) !== "", ...terminal },
    stderr: {
      write(text) {
        err += text;
        world.onWords?.(text);
        return true;
      },
      ...terminal,
    },
    stdin: Object.assign(each(chunks), terminal),
    env: { ...world.env },
    cwd: world.cwd ?? cwd,
    program: "redrive",
    onSignal(listener) {
      world.onReady?.(listener);
      return () => undefined;
    },
  };
  const code = await run(args, io);
  return { code, out, err };
}

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

/** A new folder, removed with the test. */
export function createBench(): Bench {
  const folder = testFolder();
  const call = (args: readonly string[], world?: World): Promise<Outcome> => runCli(args, folder, world);
  return {
    folder,
    run: call,
    async json(args, world) {
      const outcome = await call([...args, "--json"], world);
      expect(outcome.out.endsWith("\n"), outcome.err).toBe(true);
      return { ...outcome, document: JSON.parse(outcome.out) as Document };
    },
    write(name, text) {
      const path = join(folder, name);
      writeFileSync(path, text);
      return path;
    },
    sql(query) {
      const db = openBeside(join(folder, "redrive.db"));
      try {
        return db.prepare(query).all();
      } finally {
        db.close();
      }
    },
  };
}

/** A loop of user code that never gives the thread back, and hardly uses the processor meanwhile. */
export const RESTING_LOOP = "for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);";

/** Job types of every temper, as a user writes them. */
export const JOBS_TS = `
import { defineJob, fixed, PermanentError } from "redrive";
enum Mood { Good = "good" }
export const hello = defineJob("hello", {
  async run(input: { name?: string }) { return { greeting: "hello " + (input.name ?? "you"), mood: Mood.Good }; },
});
export const broken = defineJob("broken", {
  run(): never { throw new PermanentError("no such file postgres://user:hunter2@db/x"); },
});
export const flaky = defineJob("flaky", {
  backoff: fixed(1),
  run(_input: unknown, { attempt }) { if (attempt < 3) throw new Error("not yet"); return attempt; },
});
export const stubborn = defineJob("stubborn", {
  run(): never { throw new Error("never works"); },
});
export const picky = defineJob("picky", {
  input: { "~standard": { version: 1, vendor: "test", validate: (value: unknown) =>
    (value as { n?: unknown }).n === 1 ? { value } : { issues: [{ message: "n must be 1", path: ["n"] }] } } },
  run: () => null,
});
`;
