// One run of `redrive batch` whose process is killed again and again with SIGKILL, at moments that a seed chooses. The
// books are read from the store after every kill, the side effects from a journal that the commands write.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededDice } from "../../src/testing/fake-system.ts";
import { openBeside } from "./database-file.ts";

const COMMAND = `text=$(cat)
echo "$text" >> journal
sleep "$1"
`;

/** What to do. */
export interface KillsOptions {
  /** How the command line is started. */
  readonly start: readonly string[];
  readonly items: number;
  readonly kills: number;
  /** How long a command takes. */
  readonly seconds: number;
  readonly seed: number;
  /** The longest time from a start to the next kill. */
  readonly longestMs: number;
}

/** What happened, and what is wrong about it. */
export interface KillsReport {
  readonly items: number;
  readonly kills: number;
  /** Commands that were started in all. */
  readonly commands: number;
  /** Items in flight at a kill, summed over the kills. */
  readonly interrupted: number;
  readonly reruns: number;
  /** Commands whose input was cut short, because the kill came while it was handed over. */
  readonly cut: number;
  readonly wrong: readonly string[];
}

type Answer = { readonly code: number } | null;

/** Runs it. */
export async function batchKills(options: KillsOptions): Promise<KillsReport> {
  const { start, items, kills, seconds, seed, longestMs } = options;
  const folder = mkdtempSync(join(tmpdir(), "redrive-batch-"));
  const bits = seededDice(seed, "kills");
  const random = (): number => bits() / 2 ** 32;
  try {
    writeFileSync(join(folder, "entry.sh"), COMMAND);
    writeFileSync(join(folder, "items.json"), JSON.stringify(Array.from({ length: items }, (_, at) => at)));
    const store = join(folder, "redrive.db");
    const flags = ["--batch-size", "10", "--parallel", "2", "--name", "kills", "--json"];
    const args = ["batch", "--input", "items.json", ...flags, "--", "sh", "entry.sh", String(seconds)];
    const inFlight = new Map<string, number>();
    let killed = 0;
    let answer: Answer = null;
    for (let life = 0; life < kills + 5 && answer === null; life++) {
      const child = spawn(process.execPath, [...start, ...args], { cwd: folder, stdio: ["ignore", "pipe", "ignore"] });
      let out = "";
      child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
      const ended = new Promise<number | null>((resolve) => child.on("close", (code) => resolve(code)));
      const isOver = { yet: false };
      void ended.then(() => (isOver.yet = true));
      if (killed < kills) await killLater(child, random, longestMs, join(folder, "journal"), isOver);
      const code = await ended;
      if (code === null) {
        killed += 1;
        for (const id of running(store)) inFlight.set(id, (inFlight.get(id) ?? 0) + 1);
      } else answer = { ...(JSON.parse(out) as object), code };
    }
    return judged(folder, { items, killed, answer, inFlight });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One kill in five comes while the process starts, the others some time after it has begun to work. */
async function killLater(
  child: ChildProcess,
  random: () => number,
  longestMs: number,
  journal: string,
  isOver: { readonly yet: boolean },
): Promise<void> {
  const sizeOf = (): number => (existsSync(journal) ? statSync(journal).size : 0);
  const before = sizeOf();
  if (random() > 0.2)
    for (let waited = 0; waited < 20_000 && sizeOf() === before && !isOver.yet; waited += 10) await sleep(10);
  for (let left = random() * longestMs; left > 0 && !isOver.yet; left -= 10) await sleep(Math.min(10, left));
  child.kill("SIGKILL");
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The items that ran when the process was killed; none where it had not even made the file. */
function running(store: string): string[] {
  if (!existsSync(store)) return [];
  try {
    return read(store, "select payload from job where state = 'running'").map(([payload]) => payload as string);
  } catch (error) {
    if (/no such table/.test(String(error))) return [];
    throw error;
  }
}

function read(store: string, query: string): unknown[][] {
  const db = openBeside(store);
  try {
    return db.prepare(query).all();
  } finally {
    db.close();
  }
}

interface Told {
  readonly items: number;
  readonly killed: number;
  readonly answer: Answer;
  readonly inFlight: ReadonlyMap<string, number>;
}

function judged(folder: string, { items, killed, answer, inFlight }: Told): KillsReport {
  const journal = readFileSync(join(folder, "journal"), "utf8").trim().split("\n");
  const starts = new Map<string, number>();
  const whole = journal.filter((line) => line.endsWith("]"));
  for (const line of whole)
    for (const item of JSON.parse(line) as number[]) starts.set(String(item), (starts.get(String(item)) ?? 0) + 1);
  const books = read(join(folder, "redrive.db"), "select state, count(*), sum(attempts) from job group by state");
  const wrong: string[] = [];
  if (answer?.code !== 0) wrong.push(`the last life ended with ${JSON.stringify(answer)}`);
  if (JSON.stringify(books) !== JSON.stringify([["completed", items, 0]]))
    wrong.push(`books: ${JSON.stringify(books)}`);
  let reruns = 0;
  for (let item = 0; item < items; item++) {
    const started = starts.get(String(item)) ?? 0;
    reruns += Math.max(0, started - 1);
    if (started < 1) wrong.push(`item ${item} never ran`);
    if (started > 1 + (inFlight.get(String(item)) ?? 0))
      wrong.push(`item ${item} ran ${started} times without a reason`);
  }
  const interrupted = [...inFlight.values()].reduce((sum, times) => sum + times, 0);
  return {
    items,
    kills: killed,
    commands: journal.length,
    interrupted,
    reruns,
    cut: journal.length - whole.length,
    wrong,
  };
}
