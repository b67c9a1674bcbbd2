// Judges a chaos run by what it left behind: the history files, through the one history checker, and the store as it was
// found. The crash budget has rules of its own, because only the payloads tell who was a killer.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openStore } from "../../src/open-store.ts";
import type { DeadLetter, Job } from "../../src/core/job.ts";
import type { Page, WorkerRecord } from "../../src/store/store.ts";
import { Checker } from "../support/history/check.ts";
import { type FinalJob, hashText, type HistoryEvent, type Report } from "../support/history/event.ts";
import { keyName } from "../support/history/scribe.ts";
import { type Body, fragile } from "./jobs.ts";
import { merge } from "./merge.ts";
import { isIsolating } from "./work.ts";
import { StuckWatch } from "./stuck.ts";

/** What the judge found. */
export interface Judgement {
  readonly report: Report;
  readonly problems: readonly string[];
  readonly stuckMs: number;
  readonly stuckJob: string | null;
  readonly takenBackMs: number;
  /** Deaths of killers, and how many of them carry the end of the process as evidence. */
  readonly killed: number;
  readonly proven: number;
}

const PAGES_MOST = 100_000;

/** The store as it was found at the end. */
interface Found {
  readonly jobs: readonly Job[];
  readonly letters: readonly DeadLetter[];
  readonly workers: readonly WorkerRecord[];
  readonly storeTime: number;
}

const FOUND = "found.json";

/** Writes down what the store holds, beside the histories, so that a run can be judged again when its store is gone. */
export async function writeFound(folder: string, url: string): Promise<void> {
  const store = await openStore(url);
  try {
    const jobs = await everything((cursor) => store.list({ limit: 200, cursor }));
    const letters = await everything((cursor) => store.deadLetters({ limit: 200, cursor, redriven: true }));
    const workers = await store.workers();
    const { now: storeTime } = await store.control();
    const found: Found = { jobs, letters, workers, storeTime };
    writeFileSync(join(folder, FOUND), JSON.stringify(found), { mode: 0o600 });
  } finally {
    await store.close();
  }
}

/** Judges the run in this folder. */
export function judge(folder: string): Judgement {
  const { jobs, letters, workers, storeTime } = JSON.parse(readFileSync(join(folder, FOUND), "utf8")) as Found;
  const checker = new Checker();
  const watch = new StuckWatch();
  const last = new LastChances();
  for (const { at, event } of merge(folder)) {
    checker.read(event);
    watch.read(at, event);
    last.read(event);
  }
  const found = letters.map(({ job, generation, redrivenAt }) => ({
    job: job.id,
    generation,
    redriven: redrivenAt !== null,
  }));
  const report = checker.finish({ jobs: jobs.map(finalJob), letters: found, workers, storeTime, drained: true });
  const broken = report.violations.map(
    ({ rule, job, message }) => `${rule} ${job === null ? "" : `job ${job}: `}${message}`,
  );
  const killed = letters.filter(({ job }) => isKiller(job));
  return {
    report,
    problems: [...broken, ...letters.flatMap((letter) => letterProblems(letter, last)), ...jobs.flatMap(jobProblems)],
    stuckMs: watch.longestMs,
    stuckJob: watch.longestJob,
    takenBackMs: watch.longestUntilTakenBackMs,
    killed: killed.length,
    proven: killed.filter(({ failure }) => failure.code === "SIGKILL").length,
  };
}

/**
 * Which bystanders the conductor itself may have killed: a worker without isolation runs a job with one crash left in its
 * own process, and where that process is killed or halted the job is charged. A job never is for what another job did.
 */
class LastChances {
  readonly #holders = new Map<string, string>();
  readonly #actors = new Map<string, string>();
  readonly #killedByJobs = new Set<string>();

  read({ op, phase, actor, job, worker }: HistoryEvent): void {
    if (worker === null) return;
    if (op === "register") this.#actors.set(worker, actor);
    // A claim whose answer was lost is known by the list of lost runs.
    if ((op === "claim" || op === "expired") && phase === "ok" && job !== null) this.#holders.set(job, worker);
    if (op === "gone" && actor !== "conductor") this.#killedByJobs.add(worker);
  }

  mayBeKilled(job: string): boolean {
    const holder = this.#holders.get(job) ?? "";
    return !isIsolating(this.#actors.get(holder) ?? "") && !this.#killedByJobs.has(holder);
  }
}

/** A killer dies of its crashes once they are used up; no other job does, however many of its processes were killed. */
function letterProblems({ job, reason, crashes, generation }: DeadLetter, last: LastChances): string[] {
  const where = `budget job ${job.id} (${job.type}), generation ${generation}`;
  if (isKiller(job)) {
    if (reason !== "crashed") return [`${where}: a killer died as ${reason}`];
    return crashes === job.maxCrashes ? [] : [`${where}: died of ${crashes} crashes, allowed are ${job.maxCrashes}`];
  }
  if (reason === "crashed" && job.type === fragile.type && last.mayBeKilled(job.id)) return [];
  return reason === "permanent" ? [] : [`${where}: a bystander died as ${reason} with ${crashes} crashes`];
}

function jobProblems(job: Job): string[] {
  if (isKiller(job) && job.state === "completed") return [`budget job ${job.id}: a killer completed`];
  return job.type === fragile.type || job.crashes < job.maxCrashes ? [] : [`budget job ${job.id}: too many crashes`];
}

function isKiller(job: Job): boolean {
  return job.type === fragile.type && (JSON.parse(job.payload) as Body).end === "kill";
}

function finalJob(job: Job): FinalJob {
  const { id, type, state, epoch, generation, attempts, crashes, maxAttempts, runAt } = job;
  const counters = { epoch, generation, attempts, crashes, maxAttempts };
  return { ...counters, id, state, runAt, key: keyName(type, job.key), payloadHash: hashText(job.payload) };
}

async function everything<T>(page: (cursor: string | null) => Promise<Page<T>>): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | null = null;
  for (let pages = 0; pages < PAGES_MOST; pages++) {
    const { items: more, next }: Page<T> = await page(cursor);
    items.push(...more);
    if (next === null) return items;
    cursor = next;
  }
  throw new Error(`A list did not end within ${PAGES_MOST} pages.`);
}
