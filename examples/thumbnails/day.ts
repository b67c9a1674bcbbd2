// The story of a run, step by step, each told as it happens. Redrive does the work; this file only arranges the trouble
// and looks on.
import { setTimeout as sleep } from "node:timers/promises";
import { createRedrive, type Job, type Redrive } from "redrive";
import { balance, type Run } from "./books.ts";
import { hasFfmpeg, INSTALL_FFMPEG } from "./ffmpeg.ts";
import { imageThumbnail, videoThumbnail } from "./jobs.ts";
import { type Medium, planMedia, upload } from "./media.ts";
import { defaultStore } from "./object-store.ts";
import { redriveCommand, type Settings, startWorker, type Worker } from "./processes.ts";
import { showDeaths, showLog, showQueries } from "./report.ts";
import { check, command, heading, line, progress, progressDone } from "./screen.ts";

/** What a run is told. */
export interface DayOptions {
  readonly store: string;
  readonly size: "small" | "full";
  readonly delaySeconds: string;
}

const ATTEMPTS = 3;
const LOOK_MS = 20;
const LONGEST_MS = 120_000;

/** Runs the whole story; true if the books balance. */
export async function startDay({ store, size, delaySeconds }: DayOptions): Promise<boolean> {
  heading("Thumbnails: a folder as object store, two workers, a bad day");
  const videos = await hasFfmpeg();
  if (!videos) {
    line("videos", "left out, because ffmpeg is missing; to have them:");
    command(INSTALL_FFMPEG);
  }
  const media = planMedia(size, { videos });
  const defaults = { preset: "worker", maxAttempts: ATTEMPTS } as const;
  await using redrive = await createRedrive({ store, jobs: [imageThumbnail, videoThumbnail], defaults });
  const day = new Day(redrive, { store, attempts: ATTEMPTS, delaySeconds }, media);
  await day.prepare();
  await day.work();
  const deaths = await showDeaths(redrive, day.run);
  await showQueries(store, deaths);
  showLog(day.run, deaths);
  await day.recover();
  heading("The books");
  const checks = await balance(redrive, day.run);
  for (const { ok, text } of checks) check(ok, text);
  heading("Look yourself");
  for (const each of ["dlq stats", "dlq list", "dlq show ID"]) command(typed(each, store));
  return checks.every(({ ok }) => ok);
}

const hasEnded = ({ state }: Job): boolean => state !== "queued" && state !== "running";
const isTroubled = ({ fate }: Medium): boolean => fate === "flaky" || fate === "outage";
const seconds = (sinceMs: number): string => `${((performance.now() - sinceMs) / 1_000).toFixed(1)} s`;

/** A command as a person would type it in this folder, where the config file knows the usual store. */
function typed(args: string, store: string): string {
  return `npx redrive ${args}${store === defaultStore ? "" : " --store URL"}`;
}

/** One run: its jobs, its workers, and what was done by hand. */
class Day {
  readonly #redrive: Redrive;
  readonly #settings: Settings;
  readonly #media: readonly Medium[];
  // Sets the jobs of this run apart, because a Postgres may hold those of others.
  readonly #name = `run-${new Date().toISOString().replace(/\D/g, "").slice(2, 14)}`;
  readonly #ids = new Map<string, string>();
  #workers: readonly Worker[] = [];
  #redriven: readonly string[] = [];

  constructor(redrive: Redrive, settings: Settings, media: readonly Medium[]) {
    this.#redrive = redrive;
    this.#settings = settings;
    this.#media = media;
  }

  get run(): Run {
    const { attempts } = this.#settings;
    const [name, media, ids] = [this.#name, this.#media, this.#ids];
    return { name, media, ids, attempts, workers: this.#workers, redriven: this.#redriven };
  }

  /** Clears the queue, starts two workers and draws the media meanwhile. */
  async prepare(): Promise<void> {
    // The files of a run that was interrupted are gone, and its jobs would take what is meant for ours.
    const { cancelled } = await this.#redrive.jobs.cancel({ queue: imageThumbnail.queue });
    if (cancelled > 0) line("cleared", `${cancelled} jobs of an earlier run are cancelled`);
    const startedMs = performance.now();
    const starting = Promise.all([1, 2].map((number) => startWorker(this.#settings, number)));
    const waiting = [...this.#media];
    const draw = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        await upload(next);
        progress(this.#media.length - waiting.length, this.#media.length, "files drawn");
      }
    };
    await Promise.all([draw(), draw(), draw()]);
    progressDone();
    const count = (...wanted: string[]): number =>
      this.#media.filter(({ kind, fate }) => wanted.includes(kind) || wanted.includes(fate)).length;
    const drawn = `${count("image")} images and ${count("video")} videos in ${seconds(startedMs)}`;
    line("media", `${drawn}; ${count("cut", "garbage")} broken, ${count("missing")} missing`);
    this.#workers = await starting;
    const { attempts, delaySeconds } = this.#settings;
    line("workers", `two processes; ${attempts} attempts in all, ${delaySeconds} s before every retry`);
  }

  /** Everything until the last job has ended. */
  async work(): Promise<void> {
    const startedMs = performance.now();
    const calm = this.#media.filter((medium) => !isTroubled(medium));
    await this.#enqueue(calm);
    // The workers are at it already: a bad one may be dead by now, and a second enqueue of it is a warning.
    const good = calm.filter(({ fate }) => fate === "good");
    const duplicates = await this.#enqueue(good);
    const enqueued = `${calm.length} jobs enqueued, ${good.length} of them twice`;
    line("queue", `${enqueued}: ${duplicates} duplicates, no second job`);
    await this.#killOne(Math.ceil(calm.length / 4));
    const troubled = this.#media.filter(isTroubled);
    await this.#enqueue(troubled);
    line("store", `${troubled.length} more jobs: it answers 503 twice for each, all day for one`);
    await this.#watch((jobs) => (jobs.length >= this.#ids.size && jobs.every(hasEnded) ? true : null));
    await Promise.all(this.#workers.map((worker) => worker.stop()));
    line("ended", `${this.#ids.size} jobs in ${seconds(startedMs)}`);
  }

  /** Enqueues a job for each; says how many were there already. */
  async #enqueue(media: readonly Medium[]): Promise<number> {
    const one = ({ key, kind }: Medium) => {
      const options = { key: `${this.#name}/${key}`, tenant: this.#name };
      return this.#redrive.enqueue(kind === "image" ? imageThumbnail : videoThumbnail, { key }, options);
    };
    const jobs = await Promise.all(media.map(one));
    for (const [at, { id }] of jobs.entries()) this.#ids.set(media[at]?.key ?? "", id);
    return jobs.filter(({ duplicate }) => duplicate).length;
  }

  /** Kills a worker that has work in its hands, once so many jobs have ended; any, if all have. */
  async #killOne(ended: number): Promise<void> {
    const holds = (worker: Worker, jobs: readonly Job[]): Job[] =>
      jobs.filter((job) => job.state === "running" && job.worker === worker.id);
    const victim = await this.#watch((jobs) => {
      if (jobs.filter(hasEnded).length < ended) return null;
      const busy = this.#workers.find((worker) => holds(worker, jobs).length > 0);
      return busy ?? (jobs.every(hasEnded) ? this.#workers[0] : null);
    });
    await victim.kill();
    const { length } = holds(victim, await this.#jobs());
    line("kill -9", `worker ${victim.pid}, with ${length} jobs in its hands; the other one takes them`);
  }

  async #jobs(): Promise<Job[]> {
    const jobs: Job[] = [];
    for await (const job of this.#redrive.jobs.all({ tenant: this.#name })) jobs.push(job);
    return jobs;
  }

  /** Looks at the jobs until `find` has found something; shows how far it is. */
  async #watch<T>(find: (jobs: readonly Job[]) => T | null | undefined): Promise<T> {
    const until = performance.now() + LONGEST_MS;
    while (performance.now() < until) {
      const jobs = await this.#jobs();
      const found = find(jobs);
      if (found !== null && found !== undefined) {
        progressDone();
        return found;
      }
      const count = (test: (job: Job) => boolean): number => jobs.filter(test).length;
      const retrying = count(({ state, attempts }) => state === "queued" && attempts > 0);
      const dead = count(({ state }) => state === "dead");
      progress(count(hasEnded), this.#media.length, `jobs ended, ${dead} dead, ${retrying} waiting for a retry`);
      await sleep(LOOK_MS);
    }
    throw new Error(`Not all jobs ended within ${LONGEST_MS / 1_000} s; the workers' logs are in the folder data.`);
  }

  /** What a person does the next morning: upload what was missing, send exactly those jobs back, run them. */
  async recover(): Promise<void> {
    heading("Recovery by hand");
    const missing = this.#media.filter(({ fate }) => fate === "missing");
    for (const medium of missing) await upload({ ...medium, fate: "good" });
    line("upload", `the ${missing.length} missing files`);
    this.#redriven = missing.map(({ key }) => this.#ids.get(key) ?? "");
    await this.#type(["dlq", "retry", "--class", "permanent", "--tenant", this.#name]);
    await this.#type(["drain"]);
  }

  async #type(args: readonly string[]): Promise<void> {
    command(typed(args.join(" "), this.#settings.store));
    line("", await redriveCommand(this.#settings, args));
  }
}
