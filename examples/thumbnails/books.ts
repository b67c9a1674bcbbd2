// The books of a run: what was wanted, what the store says, what the workers logged and what lies in the folder, each
// counted by itself and compared. A run is good only if all of them agree.
import { readFileSync } from "node:fs";
import type { DeadLetter, FailureClass, Job, Redrive } from "redrive";
import sharp from "sharp";
import { type Made, SIZES } from "./jobs.ts";
import type { Fate, Medium } from "./media.ts";
import { readThumbnail, thumbnailKeys } from "./object-store.ts";
import { CONCURRENCY, type Worker } from "./processes.ts";

/** What was wanted, and who worked on it. */
export interface Run {
  readonly name: string;
  readonly media: readonly Medium[];
  /** Id of the job of each object. */
  readonly ids: ReadonlyMap<string, string>;
  readonly workers: readonly Worker[];
  /** Ids of the jobs that were sent back by hand. */
  readonly redriven: readonly string[];
  readonly attempts: number;
}

/** One line of the books. */
export interface Check {
  readonly ok: boolean;
  readonly text: string;
}

/** The class and reason with which a job dies of each fate; the others complete. */
export const DEATHS: Readonly<Partial<Record<Fate, { class: FailureClass; reason: DeadLetter["reason"] }>>> = {
  cut: { class: "validation", reason: "permanent" },
  garbage: { class: "validation", reason: "permanent" },
  outage: { class: "transient", reason: "exhausted" },
};

/** Balances the books. */
export async function balance(redrive: Redrive, run: Run): Promise<Check[]> {
  const jobs: Job[] = [];
  for await (const job of redrive.jobs.all({ tenant: run.name })) jobs.push(job);
  const letters: DeadLetter[] = [];
  const redriven: DeadLetter[] = [];
  for await (const letter of redrive.deadLetters.all({ tenant: run.name, redriven: true }))
    (letter.redrivenAt === null ? letters : redriven).push(letter);
  const jobOf = new Map(jobs.map((job) => [job.id, job]));
  const completed = jobs.filter(({ state }) => state === "completed");
  return [
    ...checkSums(run, jobs),
    checkFates(run, jobOf, letters),
    checkLetters(jobs, letters),
    await checkRetries(redrive, run),
    await checkThumbnails(completed),
    checkOnce(run, completed),
    checkRecovery(run, jobs, redriven),
  ];
}

function checkSums({ ids, media }: Run, jobs: readonly Job[]): Check[] {
  const count = (state: Job["state"]): number => jobs.filter((job) => job.state === state).length;
  const [completed, dead] = [count("completed"), count("dead")];
  const wanted = new Set(ids.values());
  const lost = [...wanted].filter((id) => !jobs.some((job) => job.id === id)).length;
  const strangers = jobs.filter(({ id }) => !wanted.has(id)).length;
  const enqueued = wanted.size;
  return [
    {
      ok: enqueued === media.length && completed + dead === enqueued,
      text: `${enqueued} jobs for ${media.length} objects = ${completed} completed + ${dead} dead`,
    },
    { ok: lost === 0 && strangers === 0, text: `${lost} lost, ${strangers} that were never enqueued` },
  ];
}

function checkFates({ media, ids }: Run, jobOf: ReadonlyMap<string, Job>, letters: readonly DeadLetter[]): Check {
  const letterOf = new Map(letters.map((letter) => [letter.job.id, letter]));
  const wrong = media.filter(({ key, fate }) => {
    const id = ids.get(key) ?? "";
    const expected = DEATHS[fate];
    if (expected === undefined) return jobOf.get(id)?.state !== "completed";
    const letter = letterOf.get(id);
    return letter?.failure.class !== expected.class || letter.reason !== expected.reason;
  });
  const as = wrong.length === 0 ? "" : `, not so ${wrong.map(({ key }) => key).join(", ")}`;
  return { ok: wrong.length === 0, text: `every job ended as its file deserves, and with the right class${as}` };
}

function checkLetters(jobs: readonly Job[], letters: readonly DeadLetter[]): Check {
  const dead = new Set(jobs.filter(({ state }) => state === "dead").map(({ id }) => id));
  const named = new Set(letters.map(({ job }) => job.id));
  const ok = letters.length === dead.size && [...dead].every((id) => named.has(id));
  return { ok, text: `${letters.length} dead letters for ${dead.size} dead jobs, none for a completed one` };
}

/** What the store refused twice succeeded at the third attempt, what it refused all day died at the last. */
async function checkRetries(redrive: Redrive, { media, ids, attempts }: Run): Promise<Check> {
  const wanted = media.filter(({ fate }) => fate === "flaky" || fate === "outage");
  const shown = await Promise.all(wanted.map(({ key }) => redrive.jobs.show(ids.get(key) ?? "")));
  const ok = shown.every(({ job, history }, at) => {
    const failures = wanted[at]?.fate === "flaky" ? 2 : attempts;
    return job.attempts === failures && history.length === failures;
  });
  return { ok, text: `${wanted.length} jobs met a store that answers 503: every failure counted, once` };
}

/** The files in the folder are those of the results of completed jobs, no more and no fewer, and as they say. */
async function checkThumbnails(completed: readonly Job[]): Promise<Check> {
  const made = completed.flatMap((job) => (JSON.parse(job.result ?? "{}") as Partial<Made>).thumbnails ?? []);
  const files = await thumbnailKeys();
  const wanted = made.map(({ key }) => key).toSorted();
  const same = files.length === wanted.length && files.every((key, at) => key === wanted[at]);
  let wrong = made.length === completed.length * SIZES.length ? 0 : 1;
  for (const { key, width, height, bytes } of same ? made : []) {
    const file = await readThumbnail(key);
    const read = await sharp(file).metadata();
    const fits = String(Math.max(width, height)) === /(\d+)\.webp$/.exec(key)?.[1];
    const agrees = read.format === "webp" && read.width === width && read.height === height && file.length === bytes;
    if (!fits || !agrees) wrong += 1;
  }
  const text = `${files.length} thumbnails on disk = ${completed.length} completed × ${SIZES.length}, as their results say`;
  return { ok: same && wrong === 0, text: wrong === 0 ? text : `${text}; ${wrong} wrong` };
}

/**
 * A killed worker may have had no time to log its last write, about what it ran and what it had just finished; a second
 * line about one job nothing can explain.
 */
function checkOnce({ workers, redriven }: Run, completed: readonly Job[]): Check {
  const lines = workers.flatMap(({ log }) => readFileSync(log, "utf8").split("\n"));
  const reports = lines.filter((line) => / completed \(attempt /.test(line));
  const times = (id: string): number => reports.filter((line) => line.includes(id)).length;
  const twice = completed.filter(({ id }) => times(id) > 1).length;
  const logged = completed.filter(({ id }) => times(id) === 1).length;
  const silent = completed.length - redriven.length - logged;
  const last = silent === 0 ? "" : `, ${silent} unlogged by the killed one`;
  const text = `${twice} completed twice: ${logged} by the logs${last}, ${redriven.length} by hand`;
  return { ok: twice === 0 && silent >= 0 && silent <= 2 * CONCURRENCY, text };
}

/** By hand exactly the missing ones were sent back, once, and all of them completed. */
function checkRecovery({ media, ids, redriven }: Run, jobs: readonly Job[], letters: readonly DeadLetter[]): Check {
  const missing = media.filter(({ fate }) => fate === "missing").map(({ key }) => ids.get(key));
  const again = jobs.filter(({ generation }) => generation > 1);
  const ok =
    again.length === missing.length &&
    redriven.length === missing.length &&
    letters.length === missing.length &&
    letters.every(({ job, failure }) => missing.includes(job.id) && failure.class === "permanent") &&
    again.every(({ id, generation, state }) => missing.includes(id) && generation === 2 && state === "completed");
  return { ok, text: `${again.length} redriven = the ${missing.length} whose files were missing; all completed` };
}
