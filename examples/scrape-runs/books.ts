// The books of a day: what schedules say they made, what the store says became of it, how runs are linked, what was told,
// and what the handlers themselves wrote down. Each is counted by itself and compared.
import { readFileSync } from "node:fs";
import type { Job, Redrive, RunRecord, StuckRun } from "redrive";
import { type Entry, journal, type Site } from "./jobs.ts";

/** What was wanted, and what was seen on the way. */
export interface Day {
  /** The tenant of all its jobs. */
  readonly name: string;
  /** The schedule of each site. */
  readonly schedules: Map<Site, string>;
  /** The job that was ended by hand. */
  archived: string;
  fixed: readonly StuckRun[];
  /** Workers that died. */
  deaths: number;
}

/** One line of the books. */
export interface Check {
  readonly ok: boolean;
  readonly text: string;
}

const RETRIES = 4;

interface Books {
  readonly day: Day;
  readonly jobs: readonly Job[];
  readonly entries: readonly Entry[];
  /** The runs of each job, oldest first. */
  readonly runs: ReadonlyMap<string, readonly RunRecord[]>;
}

/** Balances the books. */
export async function balance(redrive: Redrive, day: Day): Promise<Check[]> {
  const jobs: Job[] = [];
  for await (const job of redrive.jobs.all({ tenant: day.name })) jobs.push(job);
  const runs = new Map<string, readonly RunRecord[]>();
  for (const { id } of jobs) runs.set(id, await redrive.runs.history(id));
  const lines = readFileSync(journal, "utf8").trim().split("\n");
  const books = { day, jobs, runs, entries: lines.map((line) => JSON.parse(line) as Entry) };
  return [
    checkSums(books),
    await checkTicks(redrive, books),
    checkOnce(books),
    checkGivenUp(books),
    checkLinked(books),
    checkDeaths(books),
    checkZombie(books),
    checkByHand(books),
  ];
}

function ofSite({ jobs }: Books, site: Site): Job[] {
  return jobs.filter(({ payload }) => (JSON.parse(payload) as { site?: Site }).site === site);
}

function checkSums({ jobs }: Books): Check {
  const count = (state: Job["state"]): number => jobs.filter((job) => job.state === state).length;
  const [completed, dead] = [count("completed"), count("dead")];
  const text = `${jobs.length} jobs = ${completed} completed + ${dead} given up; none is left`;
  return { ok: completed + dead === jobs.length && completed > 0 && dead > 0, text };
}

/** One job per tick: as many as the schedule says it made, all of different seconds. */
async function checkTicks(redrive: Redrive, books: Books): Promise<Check> {
  const view = await redrive.schedules.get(books.day.schedules.get("steady") ?? "");
  const jobs = ofSite(books, "steady");
  const keys = new Set(jobs.map(({ key }) => key));
  const ok = jobs.length > 0 && view?.fired === jobs.length && keys.size === jobs.length;
  return { ok, text: `cron: ${view?.fired} ticks by two schedulers, ${jobs.length} jobs, one for each` };
}

/** Whatever hung or died on the way: no job has two results, and none ran more often than it may. */
function checkOnce({ jobs, entries }: Books): Check {
  const scraped = (id: string): number => entries.filter(({ job, what }) => job === id && what === "scraped").length;
  const started = (id: string): number => entries.filter(({ job, what }) => job === id && what === "started").length;
  const wrong = jobs.filter(({ id, state }) => scraped(id) !== (state === "completed" ? 1 : 0));
  const most = Math.max(...jobs.map(({ id }) => started(id)));
  const text = `every completed job scraped once by its own journal; at most ${most} runs of any, ${RETRIES + 1} allowed`;
  return { ok: wrong.length === 0 && most <= RETRIES + 1, text };
}

/** The words of every try of a run that always hangs. */
function checkGivenUp(books: Books): Check {
  const jobs = ofSite(books, "hangs-always");
  const ends = [1, 2, 3, 4].map((n) => `retry ${n}/4 scheduled`);
  const words = [...ends, "permanently failed after 4 attempts"];
  const ok = jobs.every(({ id, state }) => {
    const messages = (books.runs.get(id) ?? []).map(({ errorMessage }) => errorMessage ?? "");
    const told = messages.length === words.length && messages.every((said, at) => said.endsWith(words[at] ?? ""));
    return state === "dead" && told && messages.every((said) => /^Run stuck for [\d.]+s - /.test(said));
  });
  return {
    ok: ok && jobs.length > 0,
    text: `${jobs.length} that always hangs: 5 runs, "retry 1/4" to "4/4", given up`,
  };
}

/** Every retry names the run that it repeats. */
function checkLinked(books: Books): Check {
  const jobs = ofSite(books, "hangs-once");
  const linked = jobs.filter(({ id }) => {
    const [first, second, ...more] = books.runs.get(id) ?? [];
    const isFirst = first?.id === id && first.status === "failed" && !first.isRetry && first.originalRunId === null;
    const isSecond = second?.status === "completed" && second.isRetry && second.originalRunId === id;
    return isFirst && isSecond && second.label === "[RETRY 1/4]" && more.length === 0;
  });
  const text = `${jobs.length} that hang once: stuck, then completed as [RETRY 1/4], linked to the original`;
  return { ok: jobs.length > 0 && linked.length === jobs.length, text };
}

function checkDeaths(books: Books): Check {
  const jobs = ofSite(books, "kills-once");
  const good = jobs.filter(({ id, state, crashes }) => {
    const [first] = books.runs.get(id) ?? [];
    return state === "completed" && crashes === 1 && first?.errorMessage?.startsWith("Worker ");
  });
  const ok = jobs.length > 0 && good.length === jobs.length && books.day.deaths === jobs.length;
  return { ok, text: `${books.day.deaths} worker killed by a run: found by its heartbeat, the run done by another` };
}

function checkZombie(books: Books): Check {
  const jobs = ofSite(books, "zombie");
  const refused = books.entries.filter(({ what }) => what === "refused");
  const ok =
    jobs.length > 0 && jobs.every(({ state, id }) => state === "completed" && refused.some((e) => e.job === id));
  return { ok, text: `${refused.length} run came back after it was given up: what it said was refused` };
}

function checkByHand({ day, jobs }: Books): Check {
  const job = jobs.find(({ id }) => id === day.archived);
  const ok = day.fixed.length === 1 && day.fixed[0]?.id === day.archived && job?.state === "completed";
  return { ok, text: `1 run without a limit: ended by hand, then ${job?.state}` };
}
