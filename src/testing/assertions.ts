// Assertions about jobs for tests. Everything throws the AssertionError of node:assert, which every test runner shows,
// with what was expected and what was found.
import { AssertionError } from "node:assert";
import { isDeepStrictEqual } from "node:util";
import { type Duration, formatDuration, parseDuration } from "../core/duration.ts";
import type { DeathReason, FailureClass, Job } from "../core/job.ts";
import { namesOf, parseOptions } from "../core/options.ts";
import { nothingHeld, shownState } from "../core/holding.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { instantOf } from "../enqueue/new-jobs.ts";
import type { Verbs } from "../store/verbs.ts";

/** Expectations about a waiting job; every field narrows. */
export interface EnqueuedExpectation {
  /** Part of the input: fields that are not named may be anything. */
  readonly input?: unknown;
  readonly key?: string | null;
  readonly tenant?: string | null;
  readonly queue?: string;
  readonly service?: string | null;
  readonly priority?: number;
  /** From its enqueue to its due time. */
  readonly delay?: Duration;
  readonly runAt?: Date | number | string;
}

/** Expectations about a dead job. */
export interface DeadExpectation {
  readonly class?: FailureClass;
  readonly reason?: DeathReason;
  /** Part of the message, or a pattern that it matches. */
  readonly message?: string | RegExp;
}

/** A job by its id or what `enqueue` answered, or any job of a type. */
export type Expected = string | { readonly id: string } | JobDefinition;

/** The assertions. */
export interface Assertions {
  /** A matching job of the type waits; answers it. */
  assertEnqueued(job: JobDefinition | string, expected?: EnqueuedExpectation): Promise<Job>;
  /** No matching job of the type waits. */
  refuteEnqueued(job: JobDefinition | string, expected?: EnqueuedExpectation): Promise<void>;
  /** The job, or one of the type, is completed, with this (part of a) result; answers it. */
  assertCompleted(job: Expected, expected?: { readonly result?: unknown }): Promise<Job>;
  /** The job, or one of the type, is dead and matches; answers it. */
  assertDead(job: Expected, expected?: DeadExpectation): Promise<Job>;
  /** The job has used so many attempts; answers it. */
  assertAttempts(job: string | { readonly id: string }, attempts: number): Promise<Job>;
}

const ENQUEUED = namesOf<EnqueuedExpectation>()([
  "input",
  "key",
  "tenant",
  "queue",
  "service",
  "priority",
  "delay",
  "runAt",
]);
const SHOWN = 5;

/** Assertions about the jobs of a store. */
export function assertionsOn(verbs: Verbs, now: () => number): Assertions {
  const found = (target: Expected): { readonly jobs: Job[]; readonly what: string } => {
    if (typeof target !== "string" && "run" in target)
      return { jobs: jobsOf(verbs, target.type), what: `a ${target.type}` };
    const id = typeof target === "string" ? target : target.id;
    const [job] = verbs.get([id]);
    return { jobs: job ? [job] : [], what: `job ${id}` };
  };
  const waiting = (target: JobDefinition | string, expected: EnqueuedExpectation) => {
    const type = typeof target === "string" ? target : target.type;
    const fits = fitting(expected);
    const jobs = jobsOf(verbs, type);
    return { type, jobs, fit: jobs.filter((job) => job.state === "queued" && fits(job)) };
  };
  const shown = (jobs: readonly Job[]): string => list(jobs, now());
  return {
    async assertEnqueued(target, expected = {}) {
      const { type, jobs, fit } = waiting(target, expected);
      if (fit[0]) return fit[0];
      throw failed(`Expected a ${type} to wait${withText(expected)}; found ${shown(jobs)}`);
    },
    async refuteEnqueued(target, expected = {}) {
      const { type, fit } = waiting(target, expected);
      if (fit.length > 0) throw failed(`Expected no ${type} to wait${withText(expected)}; found ${shown(fit)}`);
    },
    async assertCompleted(target, expected = {}) {
      parseOptions(expected, ["result"], "assertCompleted");
      const { jobs, what } = found(target);
      const isIt = ({ state, result }: Job): boolean =>
        state === "completed" && (!("result" in expected) || matches(valueOf(result), expected.result));
      const job = jobs.find(isIt);
      if (job) return job;
      throw failed(`Expected ${what} to be completed${withText(expected)}; found ${shown(jobs)}`);
    },
    async assertDead(target, expected = {}) {
      parseOptions(expected, ["class", "reason", "message"], "assertDead");
      const { jobs, what } = found(target);
      const reasonOf = ({ id }: Job) => verbs.deadLetters({ jobId: id, redriven: true, limit: 1 }).items[0]?.reason;
      const isIt = (job: Job): boolean =>
        job.state === "dead" &&
        (expected.class === undefined || job.failure?.class === expected.class) &&
        (expected.reason === undefined || reasonOf(job) === expected.reason) &&
        (expected.message === undefined || says(job.failure?.message ?? "", expected.message));
      const job = jobs.find(isIt);
      if (job) return job;
      const reasons = jobs
        .filter(({ state }) => state === "dead")
        .map((each) => `\n  ${each.id} died: ${reasonOf(each)}`);
      throw failed(`Expected ${what} to be dead${withText(expected)}; found ${shown(jobs)}${reasons.join("")}`);
    },
    async assertAttempts(target, attempts) {
      const { jobs, what } = found(target);
      const [job] = jobs;
      if (job?.attempts === attempts) return job;
      throw failed(
        `Expected ${what} to have ${attempts} attempts; found ${job ? job.attempts : "no job"}: ${shown(jobs)}`,
      );
    },
  };
}

/** Every job of a type, oldest first. */
function jobsOf(verbs: Verbs, type: string): Job[] {
  const jobs: Job[] = [];
  for (let cursor: string | null = null; ; ) {
    const page: ReturnType<Verbs["list"]> = verbs.list({ type, limit: 200, cursor });
    jobs.push(...page.items);
    if (page.next === null) return jobs.reverse();
    cursor = page.next;
  }
}

/** Tells whether a job is as expected. */
function fitting(expected: EnqueuedExpectation): (job: Job) => boolean {
  parseOptions(expected, ENQUEUED, "assertEnqueued");
  const delayMs = expected.delay === undefined ? null : parseDuration(expected.delay, "delay");
  const runAt = expected.runAt === undefined ? null : instantOf(expected.runAt, "runAt");
  const fields = (["key", "tenant", "queue", "service", "priority"] as const).filter(
    (field) => expected[field] !== undefined,
  );
  return (job) =>
    fields.every((field) => job[field] === expected[field]) &&
    (delayMs === null || job.runAt - job.createdAt === delayMs) &&
    (runAt === null || job.runAt === runAt) &&
    (expected.input === undefined || matches(valueOf(job.payload), expected.input));
}

function says(message: string, expected: string | RegExp): boolean {
  return typeof expected === "string" ? message.includes(expected) : expected.test(message);
}

function valueOf(text: string | null): unknown {
  return text === null ? undefined : JSON.parse(text);
}

function withText(expected: object): string {
  const fields = Object.entries(expected).filter(([, value]) => value !== undefined);
  if (fields.length === 0) return "";
  const text = (value: unknown): string => (value instanceof RegExp ? String(value) : JSON.stringify(value));
  return ` with ${fields.map(([name, value]) => `${name} ${text(value)}`).join(", ")}`;
}

function list(jobs: readonly Job[], now: number): string {
  if (jobs.length === 0) return "none.";
  const lines = jobs.slice(0, SHOWN).map((job) => `\n  ${lineOf(job, now)}`);
  return `${jobs.length}:${lines.join("")}${jobs.length > SHOWN ? `\n  and ${jobs.length - SHOWN} more` : ""}`;
}

function lineOf(job: Job, now: number): string {
  const wait = job.state === "queued" && job.runAt > now ? ` for ${formatDuration(job.runAt - now)}` : "";
  const about = [
    job.key === null ? "" : ` key ${JSON.stringify(job.key)}`,
    job.tenant === null ? "" : ` tenant ${JSON.stringify(job.tenant)}`,
    job.attempts === 0 ? "" : ` attempts ${job.attempts}`,
    job.failure === null ? "" : ` ${job.failure.class} ${job.failure.name}: ${job.failure.message}`,
    job.result === null ? "" : ` result ${job.result}`,
  ];
  return `${job.id} ${shownState(job, nothingHeld(now))}${wait} input ${job.payload}${about.join("")}`;
}

function failed(message: string): AssertionError {
  return new AssertionError({ message });
}

/** True if everything that the expectation names matches, and other fields may exist too; lists must have the same length. */
export function matches(actual: unknown, expected: unknown): boolean {
  if (Array.isArray(expected))
    return (
      Array.isArray(actual) &&
      actual.length === expected.length &&
      expected.every((value, at) => matches(actual[at], value))
    );
  if (isPlain(expected))
    return (
      isPlain(actual) &&
      Object.keys(expected).every((key) => matches(Object.hasOwn(actual, key) ? actual[key] : undefined, expected[key]))
    );
  return isDeepStrictEqual(actual, expected);
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
