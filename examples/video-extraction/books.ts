// The books of a day: what was wanted, what lies in the folders, what the entry points wrote down, and what the store says.
import { createRedrive } from "redrive";
import type { Video } from "./videos.ts";

/** How one entry point did. */
export interface Round {
  /** The name of its run. */
  readonly name: string;
  readonly code: number | null;
  readonly report: { items: number; succeeded: number; failed: number; retried: number; rounds: number } | null;
  readonly wasKilled: boolean;
  /** Codes of which there is a picture. */
  readonly frames: readonly string[];
  readonly thumbnails: readonly string[];
  /** The journal of both entry points: `python V001`. */
  readonly lines: readonly string[];
}

/** One line of the books. */
export interface Check {
  readonly ok: boolean;
  readonly text: string;
}

const BATCH = 5;

/** Balances the books. */
export async function balance(
  store: string,
  videos: readonly Video[],
  { python, node }: { readonly python: Round; readonly node: Round },
): Promise<Check[]> {
  const good = videos.filter(({ fate }) => fate === "good").map(({ code }) => code);
  const bad = videos.filter(({ fate }) => fate !== "good").map(({ code }) => code);
  return [
    { ok: python.wasKilled, text: "the first run was killed with kill -9, the second went on where it was" },
    checkRound("python", python, good, bad),
    checkRepeats(python, good),
    checkRound("node", node, good, bad),
    checkExact(node, videos),
    await checkErrors(store, [python.name, node.name], bad),
  ];
}

function isSame(these: readonly string[], those: readonly string[]): boolean {
  return these.toSorted().join() === those.toSorted().join();
}

function checkRound(name: string, round: Round, good: readonly string[], bad: readonly string[]): Check {
  const { code, report, frames, thumbnails } = round;
  const isCounted = report?.items === good.length + bad.length && report.succeeded === good.length;
  const ok =
    code === 1 && isCounted && report.failed === bad.length && isSame(frames, good) && isSame(thumbnails, good);
  const text = `${name}: ${report?.items} items = ${report?.succeeded} succeeded + ${report?.failed} failed, exit ${code}; ${thumbnails.length} thumbnails, one for each`;
  return { ok, text };
}

/** An exit code alone: a batch with a bad item runs again item by item, and so does what was in flight at the kill. */
function checkRepeats({ lines }: Round, good: readonly string[]): Check {
  const runs = good.map((code) => lines.filter((line) => line === `python ${code}`).length);
  const most = Math.max(...runs);
  const again = runs.filter((count) => count > 1).length;
  return {
    ok: most <= 3,
    text: `python: ${again} good items ran again with their batch of ${BATCH}, at most ${most} times in all`,
  };
}

/** A word about each item: nothing good runs twice, nothing missing is tried again, a corrupt one three times. */
function checkExact({ lines }: Round, videos: readonly Video[]): Check {
  const wanted = { good: 1, missing: 1, corrupt: 3 } as const;
  const wrong = videos.filter(
    ({ code, fate }) => lines.filter((line) => line === `node ${code}`).length !== wanted[fate],
  );
  return {
    ok: wrong.length === 0,
    text: `node: every good and missing item ran once, every corrupt one 3 times; ${wrong.length} did not`,
  };
}

/** Every failed item is a dead letter of its run, with what was wrong. */
async function checkErrors(store: string, names: readonly string[], bad: readonly string[]): Promise<Check> {
  await using redrive = await createRedrive({ store, log: "error" });
  const found = new Map<string, string[]>(names.map((name) => [name, []]));
  let told = 0;
  for (const [name, codes] of found)
    for await (const { job, failure } of redrive.deadLetters.all({ type: `batch:${name}` })) {
      const { code } = JSON.parse(job.payload) as { readonly code: string };
      codes.push(code);
      if (`${failure.message}${failure.stack}`.includes(code)) told += 1;
    }
  const ok = [...found.values()].every((codes) => isSame(codes, bad)) && told === 2 * bad.length;
  return { ok, text: `${told} dead letters, each with its code and what ffmpeg or the entry point said` };
}
