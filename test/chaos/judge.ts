// Judges a chaos run by what it left behind: the history files, through the one history checker, and the store as it was
// found. The crash budget has rules of its own, because only the payloads tell who was a killer.
import { openStore } from "../../src/open-store.ts";
import type { DeadLetter, Job } from "../../src/core/job.ts";
import type { Page } from "../../src/store/store.ts";
import { Checker } from "../support/history/check.ts";
import { type FinalJob, hashText, type Report } from "../support/history/event.ts";
import { keyName } from "../support/history/scribe.ts";
import { type Body, fragile } from "./jobs.ts";
import { merge } from "./merge.ts";
import { StuckWatch } from "./stuck.ts";
import { storeUrl } from "./told.ts";

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

/** Judges the run in this folder. */
export async function judge(folder: string): Promise<Judgement> {
  const store = openStore(storeUrl(folder));
  try {
    const jobs = await everything((cursor) => store.list({ limit: 200, cursor }));
    const letters = await everything((cursor) => store.deadLetters({ limit: 200, cursor, redriven: true }));
    const checker = new Checker();
    const watch = new StuckWatch();
    for (const { at, event } of merge(folder)) {
      checker.read(event);
      watch.read(at, event);
    }
    const { now: storeTime } = await store.control();
    const found = letters.map(({ job, generation, redrivenAt }) => ({
      job: job.id,
      generation,
      redriven: redrivenAt !== null,
    }));
    const workers = await store.workers();
    const dump = { jobs: jobs.map(finalJob), letters: found, workers, storeTime, drained: true };
    const report = checker.finish(dump);
    const broken = report.violations.map(
      ({ rule, job, message }) => `${rule} ${job === null ? "" : `job ${job}: `}${message}`,
    );
    const killed = letters.filter(({ job }) => isKiller(job));
    const problems = [...broken, ...letters.flatMap(letterProblems), ...jobs.flatMap(jobProblems)];
    return {
      report,
      problems,
      stuckMs: watch.longestMs,
      stuckJob: watch.longestJob,
      takenBackMs: watch.longestUntilTakenBackMs,
      killed: killed.length,
      proven: killed.filter(({ failure }) => failure.code === "SIGKILL").length,
    };
  } finally {
    await store.close();
  }
}

/** A killer dies of its crashes once they are used up; nobody else does, however many of its processes were killed. */
function letterProblems({ job, reason, crashes, generation }: DeadLetter): string[] {
  const where = `budget job ${job.id} (${job.type}), generation ${generation}`;
  if (isKiller(job)) {
    if (reason !== "crashed") return [`${where}: a killer died as ${reason}`];
    return crashes === job.maxCrashes ? [] : [`${where}: died of ${crashes} crashes, allowed are ${job.maxCrashes}`];
  }
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
