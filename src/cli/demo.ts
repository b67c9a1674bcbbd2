// `redrive demo`: several hundred jobs against a service that has a bad day, and the proof that the books balance. The
// day itself is in demo/day.ts; here it is prepared, watched and summed up.
import { invalid } from "../core/options.ts";
import { openStore } from "../open-store.ts";
import { openDeadLetters } from "../operate/dead-letters.ts";
import type { CauseCount } from "../store/store.ts";
import { put } from "../system/output.ts";
import { realSystem } from "../system/real.ts";
import { balance, type Books } from "./demo/books.ts";
import { nextCommands } from "./demo/commands.ts";
import { type Day, HARD_STOP_MS, planDay } from "./demo/day.ts";
import { freshFile } from "./demo/demo-file.ts";
import { canMove, liveView, noView, plainView, type View } from "./demo/screen.ts";
import { type Summary, summaryLines } from "./demo/summary.ts";
import { complain } from "./complain.ts";
import { EXIT } from "./exit.ts";
import type { Sink } from "./io.ts";

/** What can be said about a demo. */
export interface DemoOptions {
  /** A file that does not exist yet; default `.redrive/demo.db`, which is replaced. */
  readonly file?: string | undefined;
  /** 20 to 2,000; default 360. */
  readonly jobs?: number | undefined;
  /** Fixes the dice of the service; default 7. */
  readonly seed?: number | undefined;
  /** One JSON document instead of everything else. */
  readonly json?: boolean | undefined;
  /** Only the summary. */
  readonly quiet?: boolean | undefined;
}

/** What a demo touches. */
export interface DemoIo {
  readonly stdout: Sink & { on?(event: "error", listener: () => void): unknown };
  readonly stderr: Sink;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const DEFAULTS = { jobs: 360, seed: 7 };
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const EXIT_OF = { SIGINT: EXIT.SIGINT, SIGTERM: EXIT.SIGTERM, SIGHUP: 129 } as const;

/** Runs the demo; resolves with the exit code, which is 0 only if the books balance. */
export async function demo(options: DemoOptions, io: DemoIo): Promise<number> {
  // Whoever stops reading (`| head`) does not stop the day; it is just not told any more.
  const unheard = (): void => undefined;
  io.stdout.on?.("error", unheard);
  try {
    return await demonstrate(options, io);
  } catch (error) {
    return complain(error, io, options.json === true);
  }
}

async function demonstrate(options: DemoOptions, io: DemoIo): Promise<number> {
  const jobs = whole("jobs", options.jobs ?? DEFAULTS.jobs, 20, 2_000);
  const seed = whole("seed", options.seed ?? DEFAULTS.seed, 0, 2 ** 31 - 1);
  const { path: file, release } = freshFile(options.file, process.cwd());
  const stop = listenToSignals();
  const day = planDay({ store: `sqlite:${file}`, jobs, seed, env: io.env, system: realSystem, signal: stop.signal });
  const startedMs = realSystem.monotonic();
  const view = viewFor(options, io);
  try {
    const books = balance(await watched(day, view));
    const signal = stop.heard();
    if (signal) {
      put(io.stderr, "text", `\nStopped by ${signal}. What was done until then is in ${file}.\n`);
      return EXIT_OF[signal];
    }
    const ms = Math.round(realSystem.monotonic() - startedMs);
    await conclude({ day, books, ms, seed, file }, options, io);
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

function viewFor({ json, quiet }: DemoOptions, { stdout, env }: DemoIo): View {
  if (json || quiet) return noView;
  return canMove(stdout, env) ? liveView(stdout, realSystem) : plainView(stdout, realSystem);
}

interface Conclusion {
  readonly day: Day;
  readonly books: Books;
  readonly ms: number;
  readonly seed: number;
  readonly file: string;
}

async function conclude({ day, books, ms, seed, file }: Conclusion, options: DemoOptions, io: DemoIo): Promise<void> {
  const store = `sqlite:${file}`;
  const { causes, example } = await causesIn(store);
  const next = nextCommands({ store, cwd: process.cwd(), causes, example });
  const { retries } = day.board;
  if (options.json) {
    const { lost, open, completedTwice, checks, ...counts } = books;
    const sizes = { lost: lost.length, open: open.length, completedTwice: completedTwice.length };
    const told = causes.map(({ fingerprint, count, class: found, message }) => ({
      fingerprint,
      count,
      class: found,
      message,
    }));
    const document = {
      ...counts,
      ...sizes,
      retries,
      ms,
      seed,
      store,
      checks,
      causes: told,
      next: next.flatMap(({ commands }) => commands),
    };
    put(io.stdout, "json", `${JSON.stringify(document)}\n`);
    return;
  }
  const summary: Summary = { books, retries, ms, seed, causes, next, late: ms >= HARD_STOP_MS };
  const colour = io.stdout.isTTY === true && !io.env["NO_COLOR"] && io.env["TERM"] !== "dumb";
  const columns = io.stdout.isTTY ? io.stdout.columns || 80 : 132;
  put(io.stdout, "text", `${summaryLines(summary, columns, colour).join("\n")}\n`);
}

async function causesIn(url: string): Promise<{ causes: readonly CauseCount[]; example: string | null }> {
  const store = await openStore(url);
  try {
    const letters = openDeadLetters(store);
    const { causes } = await letters.stats();
    // The one with the longest story.
    const { items } = await letters.list({ reason: "exhausted", limit: 200 });
    const longest = items.toSorted((a, b) => b.attempts - a.attempts)[0];
    return { causes, example: longest?.job.id ?? null };
  } finally {
    await store.close();
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
  for (const signal of SIGNALS) process.on(signal, listener);
  return {
    signal: controller.signal,
    heard: () => heard,
    end: () => {
      for (const signal of SIGNALS) process.removeListener(signal, listener);
    },
  };
}

function whole(name: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw invalid(name, `a whole number from ${least} to ${most}`, value, `change --${name}, or leave it out`);
}
