// The books of a run: the input, what the turns said, what the store has, the output file and the API's own journal, each
// counted by itself and compared. A run is good only if all of them agree.
import { readFile } from "node:fs/promises";
import type { DeadLetter, Job, JobDetails, Redrive } from "redrive";
import { type Call, RETRY_AFTER_SECONDS } from "./api.ts";
import { companyOf, type Fate, fateOf, refusalsOf } from "./customers.ts";
import { enrich } from "./jobs.ts";
import type { Figures, Place } from "./turn.ts";

/** Where the records of a run are. */
export interface States {
  readonly completed: number;
  readonly waiting: number;
  readonly running: number;
  readonly dead: number;
}

/** What was fed, and what was seen on the way. */
export interface Run {
  /** What every id begins with. */
  readonly label: string;
  readonly records: number;
  readonly place: Place;
  readonly journal: readonly Call[];
  readonly turns: {
    readonly fed: { readonly lines: number; readonly changed: number };
    /** Null for the turn that was killed. */
    readonly figures: Figures | null;
    readonly states: States;
  }[];
  /** Calls that the killed turn had made. */
  killedAfter: number;
  /** Whether it left the output of the turn before it as it was. */
  untouched: boolean;
}

/** One line of the books. */
export interface Check {
  readonly ok: boolean;
  readonly text: string;
}

const MOST_ATTEMPTS = 6;
const BASE_MS = 200;

/** The records of a run by their id. */
async function jobsOf(redrive: Redrive, label: string): Promise<Map<string, Job>> {
  const jobs = new Map<string, Job>();
  for await (const job of redrive.jobs.all({ type: enrich.type }))
    if (job.key?.startsWith(`${label}-`)) {
      if (jobs.has(job.key)) throw new Error(`The record ${job.key} is there twice.`);
      jobs.set(job.key, job);
    }
  return jobs;
}

/** Counts where the records are. */
export async function countStates(redrive: Redrive, label: string): Promise<States> {
  const jobs = [...(await jobsOf(redrive, label)).values()];
  const count = (state: Job["state"]): number => jobs.filter((job) => job.state === state).length;
  return { completed: count("completed"), waiting: count("queued"), running: count("running"), dead: count("dead") };
}

/** Balances the books. */
export async function balance(redrive: Redrive, run: Run): Promise<Check[]> {
  const jobs = await jobsOf(redrive, run.label);
  const letters = new Map<string, DeadLetter>();
  for await (const letter of redrive.deadLetters.all({ type: enrich.type }))
    if (letter.job.key?.startsWith(`${run.label}-`)) letters.set(letter.job.key, letter);
  const details = new Map<string, JobDetails>();
  for (const [id, job] of jobs) {
    const isPlain = job.attempts + job.crashes === 0;
    details.set(id, isPlain ? { job, history: [] } : await redrive.jobs.show(job.id));
  }
  const calls = new Map<string, Call[]>();
  for (const call of run.journal) calls.set(call.id, [...(calls.get(call.id) ?? []), call]);
  return [
    checkSums(run, jobs),
    checkTurns(run),
    checkFates(run, details, letters),
    checkCalls(run, details, calls),
    checkAnswers(run, jobs, calls),
    checkWaits([...details.values()]),
    checkClock(details, calls),
    await checkOutput(run, jobs),
    checkKill(run),
  ];
}

const numberIn = (id: string): number => Number(id.slice(id.indexOf("-") + 1));
const fateIn = (id: string): Fate => fateOf(numberIn(id));

/** Every record is in one place, after each turn and in the end. */
function checkSums({ records, turns }: Run, jobs: ReadonlyMap<string, Job>): Check {
  const last = turns.at(-1)?.states ?? { completed: 0, waiting: 0, running: 0, dead: 0 };
  const lost = turns.filter(({ fed, figures, states }) => {
    const there = states.completed + states.waiting + states.running + states.dead;
    // What the killed turn had not read yet is not there.
    return figures ? there !== fed.lines - 2 * fed.changed : there > fed.lines;
  }).length;
  const ok = lost === 0 && jobs.size === records && last.completed + last.dead === records;
  const text = `${records} records = ${last.completed} results + ${last.waiting} waiting + ${last.dead} dead letters`;
  return { ok, text: `${text}; none lost, none twice, after each of ${turns.length} turns` };
}

/** What the turns said adds up to the input, however often it was fed. */
function checkTurns({ turns, records }: Run): Check {
  const whole = turns.flatMap(({ fed, figures }) => (figures ? [{ fed, figures }] : []));
  const wrong = whole.filter(({ fed, figures }) => {
    const { enqueued, known, conflicts } = figures;
    return figures.records !== fed.lines || enqueued + known + conflicts !== fed.lines || conflicts !== fed.changed;
  }).length;
  const fresh = whole.reduce((sum, { figures }) => sum + figures.enqueued, 0);
  const read = whole.reduce((sum, { figures }) => sum + figures.records, 0);
  const ok = wrong === 0 && fresh <= records;
  return {
    ok,
    text: `${read} lines read in ${whole.length} whole turns: ${fresh} new, the rest known; ${wrong} turns wrong`,
  };
}

/** The runs of a record that failed, by what they failed of; a crash is no answer, and a time-out may be none. */
interface Failures {
  /** Runs that the API refused, as the store heard of it. */
  readonly refused: number;
  /** Runs that took too long: the slow ones, and on a busy machine others, whose call may never have arrived. */
  readonly late: number;
  /** Runs that died with the killed turn. */
  readonly crashed: number;
}

function failuresOf({ history }: JobDetails): Failures {
  const count = (...classes: string[]): number =>
    history.filter(({ failure }) => classes.includes(failure.class)).length;
  const [late, crashed] = [count("timeout"), count("crashed")];
  return { refused: history.length - late - crashed, late, crashed };
}

/** Each ended as its fate wanted it; a refusal that went to a killed or a late run reached no run. */
function checkFates(
  { records }: Run,
  details: ReadonlyMap<string, JobDetails>,
  letters: ReadonlyMap<string, DeadLetter>,
): Check {
  const wrong = [...details].filter(([id, detail]) => {
    const fate = fateIn(id);
    const { state, attempts } = detail.job;
    const reason = letters.get(id)?.reason;
    const { refused, late, crashed } = failuresOf(detail);
    if (fate === "unknown") return state !== "dead" || reason !== "permanent" || refused !== 1;
    if (fate === "cursed") return state !== "dead" || reason !== "exhausted" || attempts !== MOST_ATTEMPTS;
    const wanted = fate === "flaky" ? refusalsOf(numberIn(id)) : fate === "busy" ? 1 : 0;
    const unheard = late + crashed;
    const isSlow = fate !== "slow" || unheard > 0;
    return state !== "completed" || reason !== undefined || refused > wanted || refused + unheard < wanted || !isSlow;
  });
  const count = (fate: Fate): number => [...details.keys()].filter((id) => fateIn(id) === fate).length;
  const text = `${count("unknown")} unknown ids dead at once, ${count("cursed")} cursed ones after ${MOST_ATTEMPTS} attempts`;
  const ended = `${records - wrong.length} of ${records} ended as they should`;
  const named = wrong.slice(0, 3).map(([id, { job }]) => `; ${id} (${fateIn(id)}) is ${job.state}`);
  return { ok: wrong.length === 0, text: `${text}; ${ended}${named.join("")}` };
}

/** The API was called once for each run in the books, and once more for what was in flight at the kill. */
function checkCalls(
  run: Run,
  details: ReadonlyMap<string, JobDetails>,
  calls: ReadonlyMap<string, readonly Call[]>,
): Check {
  let extra = 0;
  let missing = 0;
  for (const [id, detail] of details) {
    const { refused, late } = failuresOf(detail);
    const answered = refused + (detail.job.state === "completed" ? 1 : 0);
    const seen = calls.get(id)?.length ?? 0;
    extra += Math.max(0, seen - answered - late);
    missing += Math.max(0, answered - seen);
  }
  const strangers = [...calls.keys()].filter((id) => !details.has(id)).length;
  const held = heldAtKill(run);
  const ok = missing === 0 && strangers === 0 && extra <= held;
  const text = `${run.journal.length} calls in the API's journal: one for each run, and ${extra} more for records in flight`;
  return { ok, text: `${text} at the kill (it held ${held})` };
}

function checkAnswers(run: Run, jobs: ReadonlyMap<string, Job>, calls: ReadonlyMap<string, readonly Call[]>): Check {
  const completed = [...jobs].filter(([, { state }]) => state === "completed");
  const right = completed.filter(([id, { result }]) => {
    const answered = calls.get(id)?.some(({ status }) => status === 200) === true;
    return answered && result === JSON.stringify(companyOf(numberIn(id)));
  }).length;
  const dead = run.records - completed.length;
  const ok = right === completed.length && dead > 0;
  return { ok, text: `${right} right results, each answered by the API; ${dead} dead letters, none answered` };
}

/** By the store: no run began before the `process_after` that the run before it had set. */
function checkWaits(details: readonly JobDetails[]): Check {
  let waits = 0;
  let early = 0;
  for (const { job, history } of details) {
    const starts = [
      ...history.map(({ startedAt }) => startedAt),
      ...(job.state === "completed" ? [job.startedAt] : []),
    ];
    for (const [at, { endedAt, delayMs }] of history.entries()) {
      const next = starts[at + 1];
      if (delayMs === null || next === null || next === undefined) continue;
      waits += 1;
      if (next < endedAt + delayMs) early += 1;
    }
  }
  return {
    ok: early === 0 && waits > 0,
    text: `${waits} retries waited for their process_after; ${early} began before it`,
  };
}

/**
 * By the API's clock: base × 2^retry between two tries of a record, and as long as a 429 asked for. Only after answers that
 * the worker heard: a call that ran out of time may have reached the API late, and the worker did not read what it asked for.
 */
function checkClock(details: ReadonlyMap<string, JobDetails>, calls: ReadonlyMap<string, readonly Call[]>): Check {
  let gaps = 0;
  let short = 0;
  for (const [id, journal] of calls) {
    const late = (details.get(id)?.history ?? []).filter(({ failure }) => failure.class === "timeout");
    for (const [at, call] of journal.entries()) {
      const before = journal[at - 1];
      // The same try again: its worker was killed.
      if (!before || before.attempt === call.attempt) continue;
      if (late.some(({ attempt }) => attempt === before.attempt)) continue;
      const least = before.status === 429 ? RETRY_AFTER_SECONDS * 1_000 : BASE_MS * 2 ** (before.attempt - 1);
      gaps += 1;
      if (call.at - before.at < least) short += 1;
    }
  }
  return {
    ok: short === 0,
    text: `${gaps} waits by the API's clock: ${short} shorter than 0.2 s × 2^retry or its Retry-After`,
  };
}

/** The last output has every result once, whenever it came about. */
async function checkOutput({ place, label }: Run, jobs: ReadonlyMap<string, Job>): Promise<Check> {
  const lines = (await readFile(place.output, "utf8")).trim().split("\n");
  const told = lines
    .map((line) => JSON.parse(line) as { readonly id: string; readonly result: unknown })
    .filter(({ id }) => id.startsWith(`${label}-`));
  const ids = new Set(told.map(({ id }) => id));
  const completed = [...jobs].filter(([, { state }]) => state === "completed");
  const wrong = told.filter(({ id, result }) => JSON.stringify(result) !== jobs.get(id)?.result).length;
  // One line of the input comes twice, and so does its result.
  const doubled = told.length - ids.size;
  const ok = wrong === 0 && doubled <= 1 && completed.length === ids.size && completed.every(([id]) => ids.has(id));
  return { ok, text: `output: ${ids.size} results, every one of ${completed.length}, ${wrong} of them wrong` };
}

/** Records that the killed turn had taken and not settled. */
function heldAtKill({ turns }: Run): number {
  return turns.find(({ figures }) => figures === null)?.states.running ?? 0;
}

function checkKill(run: Run): Check {
  const { untouched, killedAfter } = run;
  const held = heldAtKill(run);
  const text = `kill -9 after ${killedAfter} calls: ${held} records held, all ended later; output of before untouched`;
  return { ok: untouched && held > 0, text };
}
