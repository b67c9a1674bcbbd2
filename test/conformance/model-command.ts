// What a command of the model test is, and what it may refer to. Commands name jobs, workers and leases by number,
// counted round, so that they keep a meaning while fast-check shrinks the sequence; an aim makes most of them hit.
import fc from "fast-check";
import type { Job, Lease, State } from "../../src/core/job.ts";
import type { Store } from "../../src/store/store.ts";
import type { Dump } from "./model-dump.ts";

/** What both stores have in common: everything a command may refer to. */
export interface Shared {
  /** Jobs may have groups. */
  readonly grouped: boolean;
  readonly clock: { now: number };
  readonly ids: string[];
  readonly workers: string[];
  readonly leases: Lease[];
  /** The releases whose runs failed, by cause. */
  readonly releases: Map<string, Set<string>>;
  /** Drivers that are in the middle of a step, by name: that of the first store, then that of the other. */
  readonly held: Map<string, HeldDriver[]>;
  /** The contents before the command. */
  latest: Dump;
  ticket: number;
  made: number;
}

/** A driver that is held before one of its calls. */
export interface HeldDriver {
  /** Lets it go on, or ends it there; resolves to how its step ended. */
  end(how: "go on" | "kill"): Promise<string>;
}

/** A fresh beginning. */
export function emptyShared(now: number, grouped: boolean): Shared {
  const counts = { queued: 0, running: 0, completed: 0, dead: 0, cancelled: 0 };
  const control = { version: 0, now, pauses: [], services: [] };
  const latest = {
    jobs: [],
    counts,
    history: [],
    deadLetters: [],
    lanes: [],
    holders: [],
    workers: [],
    control,
    cells: [],
    events: [],
    causes: [],
    redrives: [],
    payloads: [],
  };
  const lists = { ids: [], workers: [], leases: [] };
  return { grouped, clock: { now }, ...lists, releases: new Map(), held: new Map(), latest, ticket: 1, made: 0 };
}

/** One command: how it reads when a run fails, and what it asks of a store. */
export interface Command {
  readonly label: string;
  /** Fixes everything that must be the same for both stores, then answers what to ask each of them. */
  prepare(shared: Shared): (store: Store) => Promise<unknown>;
}

/** A kind of command with the values it is drawn with. */
export function command<T>(
  name: string,
  values: fc.Arbitrary<T>,
  prepare: (shared: Shared, value: T) => (store: Store) => Promise<unknown>,
): fc.Arbitrary<Command> {
  return values.map((value) => {
    const label = `${name} ${JSON.stringify(value)}`;
    return { label, prepare: (shared: Shared) => prepare(shared, value), toString: () => label };
  });
}

/** The nth of a list, counted round. */
export function pick<T>(list: readonly T[], n: number): T | undefined {
  return list[n % Math.max(1, list.length)];
}

/** A number to pick by, and whether to aim at what the command is for (three times in four) or at anything. */
export const anyPick = fc.record({ n: fc.nat(9), aimed: fc.constantFrom(true, true, true, false) });

/** One of `anyPick`. */
export type Choice = typeof anyPick extends fc.Arbitrary<infer T> ? T : never;

/** What a command knows about the job it is for. */
type Target = Pick<Job, "id" | "generation">;

/** A job that was seen, in one of these states if aimed; sometimes one that never was. */
export function jobAt({ latest, ids }: Shared, { n, aimed }: Choice, states: readonly State[]): Target {
  const fitting = latest.jobs.filter(({ state }) => states.includes(state));
  const job = aimed ? pick(fitting, n) : undefined;
  return job ?? { id: n === 9 ? "nobody" : (pick(ids, n) ?? "nobody"), generation: 1 };
}

/** A worker that was seen, one that lives if aimed. */
export function workerAt({ latest, workers }: Shared, { n, aimed }: Choice): string {
  const living = latest.workers.filter(({ givenUp }) => !givenUp).map(({ id }) => id);
  return (aimed ? pick(living, n) : undefined) ?? pick(workers, n) ?? "nobody";
}

/** A lease that was given, the current one of a running job if aimed. */
export function leaseAt({ latest, leases }: Shared, { n, aimed }: Choice): Lease {
  const running = latest.jobs.filter(({ state }) => state === "running");
  const job = aimed ? pick(running, n) : undefined;
  const current = leases.findLast(({ id }) => id === job?.id);
  return current ?? pick(leases, n) ?? { id: "nobody", epoch: 1, nonce: "n" };
}
