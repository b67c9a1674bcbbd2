// `npm start` and `redrive demo`: several hundred jobs against a service that has a bad day, and the proof that the books
// balance. A program like a user's: it knows Redrive by its public API alone. The day itself is in day.ts; here it is
// prepared, watched and summed up.
//
// Flags: --jobs N (20 to 2,000; 360), --seed N (fixes the dice of the service; 7), --file FILE (one that does not exist yet;
// default .redrive/demo.db, which is replaced), --json (one JSON document instead of everything else), --quiet (only the
// summary).
import { parseArgs } from "node:util";
import { type CauseCount, createRedrive, isRedriveError, RedriveError } from "redrive";
import { balance, type Books } from "./books.ts";
import { nextCommands } from "./commands.ts";
import { type Day, HARD_STOP_MS, planDay } from "./day.ts";
import { freshFile } from "./demo-file.ts";
import { canMove, liveView, noView, plainView, type View } from "./screen.ts";
import { type Summary, summaryLines } from "./summary.ts";

interface ShopFlags {
  readonly jobs: string;
  readonly seed: string;
  readonly file?: string;
  readonly json: boolean;
  readonly quiet: boolean;
}

const FLAGS = {
  jobs: { type: "string", default: "360" },
  seed: { type: "string", default: "7" },
  file: { type: "string" },
  json: { type: "boolean", default: false },
  quiet: { type: "boolean", default: false },
} as const;

/** Exit codes as those of the command line. */
const EXIT = { ok: 0, failed: 1, usage: 2, store: 3, SIGINT: 130, SIGTERM: 143, SIGHUP: 143 } as const;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const { stdout, stderr, env } = process;

/** Runs the demo; resolves with the exit code, which is 0 only if the books balance. */
async function demonstrate(flags: ShopFlags): Promise<number> {
  const jobs = whole("jobs", flags.jobs, 20, 2_000);
  const seed = whole("seed", flags.seed, 0, 2 ** 31 - 1);
  const { path: file, release } = freshFile(flags.file, process.cwd());
  const stop = listenToSignals();
  const day = planDay({ store: `sqlite:${file}`, jobs, seed, env, signal: stop.signal });
  const startedMs = performance.now();
  const view = viewFor(flags);
  try {
    const books = balance(await watched(day, view));
    const heard = stop.heard();
    if (heard) {
      stderr.write(`\nStopped by ${heard}. What was done until then is in ${file}.\n`);
      return EXIT[heard];
    }
    const ms = Math.round(performance.now() - startedMs);
    await conclude({ day, books, ms, seed, file }, flags.json);
    return books.balanced ? EXIT.ok : EXIT.failed;
  } finally {
    stop.end();
    release();
  }
}

async function watched(day: Day, view: View): ReturnType<Day["run"]> {
  view.begin(day.board);
  try {
    return await day.run();
  } finally {
    view.end();
  }
}

function viewFor({ json, quiet }: ShopFlags): View {
  if (json || quiet) return noView;
  return canMove(stdout, env) ? liveView(stdout) : plainView(stdout);
}

interface Conclusion {
  readonly day: Day;
  readonly books: Books;
  readonly ms: number;
  readonly seed: number;
  readonly file: string;
}

async function conclude({ day, books, ms, seed, file }: Conclusion, json: boolean): Promise<void> {
  const store = `sqlite:${file}`;
  const { causes, example } = await causesIn(store);
  const next = nextCommands({ store, cwd: process.cwd(), causes, example });
  const { retries } = day.board;
  if (json) {
    const { lost, open, completedTwice, checks, ...counts } = books;
    const sizes = { lost: lost.length, open: open.length, completedTwice: completedTwice.length };
    const told = causes.map(({ fingerprint, count, class: found, message }) => ({
      fingerprint,
      count,
      class: found,
      message,
    }));
    const commands = next.flatMap((each) => each.commands);
    const document = { ...counts, ...sizes, retries, ms, seed, store, checks, causes: told, next: commands };
    stdout.write(`${JSON.stringify(document)}\n`);
    return;
  }
  const summary: Summary = { books, retries, ms, seed, causes, next, late: ms >= HARD_STOP_MS };
  const colour = stdout.isTTY && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  const columns = stdout.isTTY ? stdout.columns || 80 : 132;
  stdout.write(`${summaryLines(summary, columns, colour).join("\n")}\n`);
}

async function causesIn(store: string): Promise<{ causes: readonly CauseCount[]; example: string | null }> {
  const redrive = await createRedrive({ store, log: "silent" });
  try {
    const { causes } = await redrive.deadLetters.stats();
    // The one with the longest story.
    const { items } = await redrive.deadLetters.list({ reason: "exhausted", limit: 200 });
    const longest = items.toSorted((a, b) => b.attempts - a.attempts)[0];
    return { causes, example: longest?.job.id ?? null };
  } finally {
    await redrive.close();
  }
}

function listenToSignals(): {
  readonly signal: AbortSignal;
  readonly heard: () => (typeof SIGNALS)[number] | null;
  readonly end: () => void;
} {
  const controller = new AbortController();
  let heard: (typeof SIGNALS)[number] | null = null;
  const listener = (signal: (typeof SIGNALS)[number]): void => {
    heard ??= signal;
    controller.abort();
  };
  // Started by another program, which is gone: as if its terminal had been closed.
  const left = (): void => listener("SIGHUP");
  for (const signal of SIGNALS) process.on(signal, listener);
  process.on("disconnect", left);
  return {
    signal: controller.signal,
    heard: () => heard,
    end: () => {
      for (const signal of SIGNALS) process.removeListener(signal, listener);
      process.removeListener("disconnect", left);
    },
  };
}

function whole(name: string, text: string, least: number, most: number): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  const message = `${name}: expected a whole number from ${least} to ${most}; got ${text}; change --${name}, or leave it out`;
  throw new RedriveError("invalid_argument", message);
}

/** Says what went wrong: one line, with `--json` also a document. */
function complain(error: unknown, json: boolean): number {
  const code = isRedriveError(error) ? error.code : "invalid_argument";
  const message = error instanceof Error ? error.message : String(error);
  stderr.write(`error: ${message}\n`);
  if (json) stdout.write(`${JSON.stringify({ error: { code, message } })}\n`);
  return code === "invalid_argument" ? EXIT.usage : EXIT.store;
}

// A reader who leaves (`| head`) does not stop the day; it only hears no more of it.
stdout.on("error", () => undefined);
try {
  process.exitCode = await demonstrate(parseArgs({ options: FLAGS }).values);
} catch (error) {
  process.exitCode = complain(error, process.argv.includes("--json"));
}
// The line to the program that started us would keep this one alive.
process.channel?.unref();
