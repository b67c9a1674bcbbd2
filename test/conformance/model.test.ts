// The same random commands on the memory store and on another: same answers, same errors, same contents after each.
// `npm run prove -- model` runs longer, RUNS=5000 so many from a fresh seed; a failure prints seed and path, and SEED=… REPLAY=path runs it again.
import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import { isRedriveError } from "../../src/core/errors.ts";
import type { Lease } from "../../src/core/job.ts";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import { createInlineSqliteStore } from "../../src/store/sqlite/inline.ts";
import type { ClaimAnswer, SettleAnswer, Settlement, Store } from "../../src/store/store.ts";
import { postgresWorld } from "../support/postgres-world.ts";
import { START } from "../support/worlds.ts";
import { type Command, emptyShared, type Shared } from "./model-command.ts";
import { anyCommand } from "./model-commands.ts";
import { anyIncidents } from "./model-incidents.ts";
import { type Dump, dump, violations } from "./model-dump.ts";
import { claimsDiffer, wrongReasons } from "./model-reasons.ts";

const { RUNS, SEED, REPLAY } = process.env;

interface Pair {
  readonly memory: Store;
  readonly other: Store;
}

async function answerOf(ask: (store: Store) => Promise<unknown>, store: Store): Promise<unknown> {
  try {
    return { answer: await ask(store) };
  } catch (error) {
    if (isRedriveError(error) && error.code === "invalid_argument") return { refused: error.code };
    throw error;
  }
}

const sameLease = (a: Lease, b: Lease): boolean => a.id === b.id && a.epoch === b.epoch && a.nonce === b.nonce;

/** A claim takes only what waited and was due, each job once, under its next epoch. */
function checkClaim({ jobs, now }: ClaimAnswer, before: Dump): void {
  expect(new Set(jobs.map(({ id }) => id)).size).toBe(jobs.length);
  for (const job of jobs) {
    const was = before.jobs.find(({ id }) => id === job.id);
    expect(was).toMatchObject({ state: "queued", epoch: job.epoch - 1 });
    expect(was?.runAt).toBeLessThanOrEqual(now);
  }
}

/** The settlements with a current lease: those of running jobs, of their last claim, each once. */
function currentOf(settlements: readonly Settlement[], shared: Shared, before: Dump): Settlement[] {
  const spent: Lease[] = [];
  return settlements.filter((lease) => {
    const job = before.jobs.find(({ id }) => id === lease.id);
    const last = shared.leases.findLast(({ id }) => id === lease.id);
    const known = last !== undefined && sameLease(last, lease);
    const current =
      known && job?.state === "running" && job.epoch === lease.epoch && !spent.some((each) => sameLease(each, lease));
    if (current && lease.verdict.kind !== "progress") spent.push(lease);
    return current;
  });
}

/** A settle applies exactly to the current leases. */
function checkSettle(answer: SettleAnswer, settlements: readonly Settlement[], current: readonly Settlement[]): void {
  const stale = settlements.filter((each) => !current.includes(each));
  expect(answer.stale).toEqual(stale.map(({ id, epoch, nonce }) => ({ id, epoch, nonce })));
}

/** The releases of each cause are those of its failed runs and of its live letters, as the model has noted them. */
function checkReleases({ releases }: Shared, current: readonly Settlement[], before: Dump, after: Dump): void {
  const note = (fingerprint: string, release: string | null | undefined): void => {
    if (typeof release === "string") releases.set(fingerprint, (releases.get(fingerprint) ?? new Set()).add(release));
  };
  for (const { id: job, verdict } of current) {
    const worker = before.jobs.find(({ id }) => id === job)?.worker;
    if ("failure" in verdict)
      note(verdict.failure.fingerprint, before.workers.find(({ id }) => id === worker)?.release);
  }
  for (const { redrivenAt, failure, release } of after.deadLetters)
    if (redrivenAt === null) note(failure.fingerprint, release);
  const real = after.causes.map(({ fingerprint }) => [fingerprint, [...(releases.get(fingerprint) ?? [])].sort()]);
  expect(after.causes.map((cause) => [cause.fingerprint, cause.releases.toSorted()])).toEqual(real);
}

async function step(command: Command, shared: Shared, { memory, other }: Pair, before: Dump): Promise<Dump> {
  const ask = command.prepare(shared);
  let settlements: readonly Settlement[] = [];
  const watch = (store: Store): Store => ({
    ...store,
    settle: (request) => {
      settlements = request.settlements;
      return store.settle(request);
    },
  });
  const [expected, actual] = [await answerOf(ask, watch(memory)), await answerOf(ask, other)];
  expect(actual, command.label).toStrictEqual(expected);
  const { answer } = expected as { answer?: unknown };
  if (command.label.startsWith("claim") && answer) {
    const claimed = answer as ClaimAnswer;
    checkClaim(claimed, before);
    shared.leases.push(...claimed.jobs.map(({ id, epoch, nonce }) => ({ id, epoch, nonce })));
  }
  const current = answer === undefined ? [] : currentOf(settlements, shared, before);
  if (command.label.startsWith("settle") && answer) checkSettle(answer as SettleAnswer, settlements, current);
  const [reference, after] = [await dump(memory), await dump(other)];
  expect(after, `contents after ${command.label}`).toStrictEqual(reference);
  expect(violations(before, after), command.label).toEqual([]);
  checkReleases(shared, current, before, after);
  expect(await wrongReasons(memory, after), `reasons after ${command.label}`).toEqual([]);
  return after;
}

/** Opens the other store, under the clock given. */
type Open = (clock: { readonly now: number }) => Promise<{ readonly store: Store; close(): Promise<void> }>;

async function runAll(commands: readonly Command[], grouped: boolean, open: Open): Promise<void> {
  const shared = emptyShared(START, grouped);
  const opened = await open(shared.clock);
  const pair = { memory: createMemoryStore({ clock: () => shared.clock.now }), other: opened.store };
  try {
    for (const store of [pair.memory, pair.other]) {
      await store.migrate();
      await store.register({ id: "w0", leaseMs: 60_000, pid: 1, host: "h", release: "1.4.0" });
    }
    shared.workers.push("w0");
    let before = await dump(pair.memory);
    for (const command of commands) {
      shared.latest = before;
      before = await step(command, shared, pair, before);
    }
    expect(await wrongReasons(pair.other, before), "reasons in the end").toEqual([]);
    for (const store of [pair.memory, pair.other]) expect(await claimsDiffer(store, before)).toEqual([]);
  } finally {
    await pair.memory.close();
    await opened.close();
  }
}

const openSqlite: Open = async (clock) => {
  const store = createInlineSqliteStore({ path: ":memory:", clock: () => clock.now });
  return { store, close: () => store.close() };
};

type Row = [name: string, open: Open, runs: number];
const OLD = inject("postgres15");
const isProving = process.env["REDRIVE_PROVE"] === "model";

describe.each([
  ["sqlite", openSqlite, isProving ? 240 : 120],
  ["postgres 18", (clock) => postgresWorld(inject("postgres18"), clock), isProving ? 40 : 25],
  // The same first ones: what may differ is how that version goes about a statement.
  ...(OLD === null ? [] : [["postgres 15", (clock) => postgresWorld(OLD, clock), isProving ? 40 : 6] satisfies Row]),
] satisfies Row[])("memory and %s", (_name, open, runs) => {
  const numRuns = Number(RUNS ?? runs);
  it(`agree on ${numRuns} random sequences`, { timeout: 120_000 + numRuns * 10_000 }, async () => {
    const anything = fc.array(anyCommand, { maxLength: 40, size: "max" });
    const sequence = fc.oneof({ weight: 3, arbitrary: anything }, anyIncidents);
    await fc.assert(
      fc.asyncProperty(sequence, fc.boolean(), (commands, grouped) => runAll(commands, grouped, open)),
      {
        numRuns,
        // The same sequences on every change; fresh ones where somebody asked for more.
        ...(RUNS === undefined || SEED !== undefined ? { seed: Number(SEED ?? 20_260_101) } : {}),
        ...(REPLAY === undefined ? {} : { path: REPLAY }),
      },
    );
  });
});
