// The event log as operators leave it: an intent and an outcome of everything they do, who did it and why; nothing of the
// work itself; and what remains where a process or the store fails in between.
import { spawn } from "node:child_process";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { RedriveError } from "../../src/core/errors.ts";
import { defineJob, PermanentError, type Redrive } from "../../src/index.ts";
import { assemble } from "../../src/redrive.ts";
import type { LoggedEvent, Store } from "../../src/store/store.ts";
import { realSystem } from "../../src/system/real.ts";
import { collectLog } from "../../src/testing/collect-log.ts";
import type { World } from "../conformance/suite.ts";
import { builtModule } from "../support/built.ts";
import { testPath } from "../support/database-file.ts";
import { postgresWorld } from "../support/postgres-world.ts";
import { threadedStore } from "../support/store-processes.ts";
import { memoryWorld, sqliteWorld } from "../support/worlds.ts";

const WORLDS: readonly (readonly [string, () => Promise<World>])[] = [
  ["memory", memoryWorld],
  ["sqlite", sqliteWorld],
  ["postgres", () => postgresWorld(inject("postgres18"))],
];

const bad = defineJob("bad", {
  run: (): never => {
    throw new PermanentError("never");
  },
});
const good = defineJob("good", { run: () => "done" });
const process = { pid: globalThis.process.pid, host: "here", isAlive: () => true };

type Change = (store: Store) => Partial<Store>;

async function program(open: () => Promise<World>, change: Change = () => ({}), actor: string | null = "ada") {
  const world = await open();
  const log = collectLog();
  const store: Store = { ...world.store, ...change(world.store) };
  const options = { store, jobs: [bad, good], log, ...(actor !== null && { actor }) };
  const redrive = await assemble(options, { system: realSystem, process });
  onTestFinished(async () => {
    await redrive.close();
    await world.close();
  });
  return { redrive, log, world, logged: () => read(world.store) };
}

/** Everything in the log, oldest first, with the value as it was meant. */
async function read(store: Store): Promise<(Omit<LoggedEvent, "at" | "value"> & { readonly value: unknown })[]> {
  const { items } = await store.events({ limit: 200, oldest: true });
  return items.map(({ at: _at, value, ...event }) => ({ ...event, value: JSON.parse(value) as unknown }));
}

const why = "incident 12";
const QUEUE = { kind: "queue", name: "mail" } as const;

type Row = [
  kind: string,
  subject: string,
  call: (redrive: Redrive) => Promise<unknown>,
  intent: object,
  outcome: object,
  before?: (redrive: Redrive) => Promise<unknown>,
];

const add = (redrive: Redrive): Promise<unknown> => redrive.schedules.set("nightly", { job: "good", every: "1h" });
const ACTIONS: readonly Row[] = [
  ["pause", "queue:mail", (r) => r.pause(QUEUE, { for: "1m", why }), { forMs: 60_000, reason: "" }, {}],
  ["resume", "queue:mail", (r) => r.resume(QUEUE, { why }), {}, { resumed: false }],
  [
    "breaker.open",
    "service:bank",
    (r) => r.breakers.open("bank", { reason: "down", why }),
    { reason: "down", forMs: null },
    { before: "closed", after: "isolated" },
  ],
  [
    "breaker.close",
    "service:bank",
    (r) => r.breakers.close("bank", { why }),
    {},
    { before: "closed", after: "closed" },
  ],
  [
    "breaker.reset",
    "service:bank",
    (r) => r.breakers.reset("bank", { why }),
    {},
    { before: "closed", after: "closed" },
  ],
  [
    "schedule.set",
    "schedule:nightly",
    (r) => r.schedules.set("nightly", { job: "good", cron: "0 2 * * *" }, { why }),
    { job: "good", cron: "0 2 * * *", timezone: "UTC", everyMs: null },
    {},
  ],
  ["schedule.pause", "schedule:nightly", (r) => r.schedules.pause("nightly", { why }), {}, {}, add],
  ["schedule.resume", "schedule:nightly", (r) => r.schedules.resume("nightly", { why }), {}, {}, add],
  [
    "schedule.run",
    "schedule:nightly",
    (r) => r.schedules.run("nightly", { why }),
    {},
    { job: expect.any(String) },
    add,
  ],
  ["schedule.remove", "schedule:nightly", (r) => r.schedules.remove("nightly", { why }), {}, { removed: true }, add],
  [
    "jobs.cancel",
    "job:a",
    (r) => r.jobs.cancel("a", { why }),
    {},
    { cancelled: 0, requested: 0, finished: 0, missing: 1 },
  ],
  [
    "jobs.reschedule",
    "job:a",
    (r) => r.jobs.reschedule("a", { priority: 9, delay: "1s", why }),
    { priority: 9, delayMs: 1_000 },
    { changed: 0, refused: 0, missing: 1 },
  ],
  [
    "dead_letters.retry",
    "job:a",
    (r) => r.deadLetters.retry("a", { why }),
    { delayMs: 0 },
    { redriven: 0, refused: 0, missing: 1 },
  ],
  [
    "dead_letters.remove",
    "job:a",
    (r) => r.deadLetters.remove("a", { why }),
    {},
    { removed: 0, refused: 0, missing: 1 },
  ],
];

describe.each(WORLDS)("the event log on %s", (_name, open) => {
  it.each(ACTIONS)("has the intent and the outcome of %s, with actor and why", async (kind, subject, ...rest) => {
    const [call, intent, outcome, before] = rest;
    const { redrive, logged } = await program(open);
    await before?.(redrive);
    const earlier = (await logged()).length;
    await call(redrive);
    const about = { kind, actor: "ada", why, subject };
    expect((await logged()).slice(earlier)).toEqual([
      { seq: earlier + 1, ...about, intent: null, value: { step: "intent", ...intent } },
      { seq: earlier + 2, ...about, intent: earlier + 1, value: { step: "done", ...outcome } },
    ]);
  });

  it("has one pair for many jobs, with the filter or the first ids, and the counts", async () => {
    const { redrive, logged } = await program(open);
    await redrive.enqueueMany(
      bad,
      Array.from({ length: 30 }, () => ({})),
    );
    await redrive.worker({ poll: 20 }).drain({ grace: 0 });
    const said = await logged();
    expect(said, "nothing of enqueue, claim, settle and death, but the new cause").toMatchObject([
      { kind: "cause.opened", actor: null },
    ]);
    await redrive.deadLetters.retry({ type: "bad" }, { delay: "1h" });
    const ids = (await redrive.jobs.list()).items.map(({ id }) => id);
    await redrive.jobs.cancel(ids);
    const [retry, retried, cancel, cancelled, ...more] = (await logged()).slice(said.length);
    expect(more).toEqual([]);
    expect([retry, retried, cancel, cancelled]).toMatchObject([
      { kind: "dead_letters.retry", subject: null, why: null, value: { filter: { type: "bad" }, delayMs: 3_600_000 } },
      { value: { step: "done", redriven: 30, refused: 0, missing: 0 } },
      { kind: "jobs.cancel", subject: null, value: { ids: ids.slice(0, 20), count: 30 } },
      { value: { step: "done", cancelled: 30 } },
    ]);
  });

  it("has stuck runs that were ended by hand, and no dry run", async () => {
    const { redrive, logged } = await program(open);
    await redrive.stuck.list();
    await redrive.stuck.fix({ dryRun: true, why });
    expect(await logged()).toEqual([]);
    await redrive.stuck.fix({ type: "good", why });
    expect(await logged()).toMatchObject([
      { kind: "stuck.fix", why, value: { step: "intent", filter: { type: "good" } } },
      { intent: 1, value: { step: "done", fixed: 0, found: 0 } },
    ]);
  });

  it("takes the reason of a pause or an opening where no other is given", async () => {
    const { redrive, logged } = await program(open);
    await redrive.pause(QUEUE, { reason: "deploy" });
    await redrive.breakers.open("bank", { reason: "down" });
    expect((await logged()).map((event) => event.why)).toEqual(["deploy", "deploy", "down", "down"]);
  });

  it("has nothing of a schedule that is set to what it is", async () => {
    const { redrive, logged } = await program(open);
    await add(redrive);
    await add(redrive);
    expect((await logged()).map(({ kind }) => kind)).toEqual(["schedule.set", "schedule.set"]);
    await redrive.schedules.set("nightly", { job: "good", every: "2h" });
    expect(await logged()).toHaveLength(4);
  });

  it("has an action that was refused as failed, with what it did until then", async () => {
    const { redrive, logged } = await program(open);
    await expect(redrive.schedules.pause("none", { why })).rejects.toMatchObject({ code: "not_found" });
    const failed = { step: "failed", error: expect.stringContaining('There is no schedule "none"') as string };
    expect(await logged()).toMatchObject([
      { value: { step: "intent" } },
      { kind: "schedule.pause", why, intent: 1, value: failed },
    ]);
  });

  it("has nothing of a call with bad arguments", async () => {
    const { redrive, logged, world } = await program(open);
    const calls: (() => Promise<unknown>)[] = [
      ...["", "  \n", "a\0", "x".repeat(1_001), 5 as unknown as string].map(
        (text) => () => redrive.resume(QUEUE, { why: text }),
      ),
      () => redrive.pause({ kind: "queue", name: "" }),
      () => redrive.resume({ kind: "queue", name: "" }),
      () => redrive.resume({ kind: "other" as "queue", name: "a" }),
      () => redrive.stuck.fix({ type: "\0" }),
      () => redrive.jobs.cancel([], { why: "" }),
      () => redrive.pause({ kind: "other" as "queue", name: "a" }),
      () => redrive.pause(QUEUE, { for: "-1s" }),
      () => redrive.jobs.cancel({}),
      () => redrive.jobs.cancel({ typo: 1 } as object),
      () => redrive.jobs.cancel(["a", ""]),
      () => redrive.jobs.cancel("a", { wy: "typo" } as object),
      () => redrive.jobs.reschedule("a", { why }),
      () => redrive.deadLetters.retry({ class: "odd" } as object),
      ...["", "a\0", "\ud800", "x".repeat(201)].map((text) => () => redrive.deadLetters.retry({ text })),
      () => redrive.deadLetters.retry({ key: "" }),
      () => redrive.deadLetters.remove({ fingerprint: "a\0" }),
      () => redrive.jobs.cancel({ key: "a\0" }),
      () => redrive.jobs.reschedule("a", { runAt: Date.now() + 20 * 366 * 86_400_000 }),
      () => redrive.deadLetters.remove({}),
      () => redrive.breakers.open("a b", { reason: "r" }),
      () => redrive.schedules.run("a b"),
    ];
    for (const call of calls) await expect(call(), String(call)).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await logged()).toEqual([]);
    expect((await world.store.control()).pauses).toEqual([]);
  });

  it("has nothing of a call about no job", async () => {
    const { redrive, logged } = await program(open);
    expect(await redrive.jobs.cancel([], { why })).toMatchObject({ cancelled: 0, missing: 0 });
    expect(await redrive.jobs.reschedule([], { priority: 9 })).toMatchObject({ changed: 0, missing: 0 });
    expect(await redrive.deadLetters.retry([])).toMatchObject({ redriven: 0, missing: 0 });
    expect(await redrive.deadLetters.remove([])).toMatchObject({ removed: 0, missing: 0 });
    expect(await logged()).toEqual([]);
  });

  it("is read by kind, actor, subject and time, in pages", async () => {
    const { redrive, world } = await program(open);
    await redrive.pause(QUEUE);
    const other = await assemble(
      { store: world.store, actor: "grace", log: "silent" },
      { system: realSystem, process },
    );
    onTestFinished(() => other.close());
    await other.resume(QUEUE);
    const numbers = async (query: Parameters<Redrive["events"]>[0]) =>
      (await redrive.events(query)).items.map(({ seq }) => seq);
    expect(await numbers({})).toEqual([4, 3, 2, 1]);
    expect(await numbers({ actor: "grace" })).toEqual([4, 3]);
    expect(await numbers({ kind: "pause", subject: "queue:mail", oldest: true })).toEqual([1, 2]);
    expect(await numbers({ from: new Date(world.clock.now + 3_600_000) })).toEqual([]);
    const { next } = await redrive.events({ limit: 3 });
    expect(await numbers({ cursor: next })).toEqual([1]);
    await expect(redrive.events({ knd: "pause" } as object)).rejects.toMatchObject({ code: "invalid_argument" });
  });
});

const down = (): Promise<never> => Promise.reject(new RedriveError("store_unavailable", "The store is down."));

describe("an intent without an outcome", () => {
  it("is left by an action whose outcome cannot be written; the action stands, and a warning says so", async () => {
    let records = 0;
    const change: Change = (store) => ({ record: (events) => (++records === 2 ? down() : store.record(events)) });
    const { redrive, log, logged, world } = await program(memoryWorld, change);
    await redrive.pause(QUEUE, { why });
    expect((await world.store.control()).pauses).toHaveLength(1);
    expect(await logged()).toMatchObject([{ kind: "pause", value: { step: "intent" } }]);
    expect(log.said("the event log has no outcome for its intent 1")).toMatchObject([{ level: "warn" }]);
  });

  it("is left by an action that the store did not answer", async () => {
    const { redrive, logged } = await program(memoryWorld, () => ({ pause: down }));
    await expect(redrive.pause(QUEUE)).rejects.toMatchObject({ code: "store_unavailable" });
    expect(await logged()).toMatchObject([{ value: { step: "intent" } }]);
  });

  it("is left by a process that was killed in between", async () => {
    const path = testPath();
    const script = `
      import { createRedrive } from ${JSON.stringify(builtModule("index.js"))};
      import { createSqliteStore } from ${JSON.stringify(builtModule("store/sqlite/index.js"))};
      const store = await createSqliteStore({ path: ${JSON.stringify(path)} });
      const killed = { ...store, pause: () => process.kill(process.pid, "SIGKILL") };
      const redrive = await createRedrive({ store: killed, actor: "ada" });
      await redrive.pause({ kind: "queue", name: "mail" }, { why: "incident 12" });
    `;
    const child = spawn(globalThis.process.execPath, ["--input-type=module", "-e", script], { stdio: "inherit" });
    const signal = await new Promise((resolve) => child.on("exit", (_code, how) => resolve(how)));
    expect(signal).toBe("SIGKILL");
    const store = await threadedStore(path);
    onTestFinished(() => store.close());
    const about = { kind: "pause", actor: "ada", why, subject: "queue:mail" };
    expect(await read(store)).toMatchObject([{ ...about, value: { step: "intent" } }]);
    expect((await store.control()).pauses).toEqual([]);
  });
});

it("does nothing where the intent cannot be written", async () => {
  const { redrive, world } = await program(memoryWorld, () => ({ record: down }));
  await expect(redrive.pause(QUEUE)).rejects.toMatchObject({ code: "store_unavailable" });
  expect((await world.store.control()).pauses).toEqual([]);
});

describe("the actor", () => {
  it("is the user and the host where neither option nor variable names one", async () => {
    const { redrive, logged } = await program(memoryWorld, undefined, null);
    await redrive.resume(QUEUE);
    const named = globalThis.process.env.REDRIVE_ACTOR ?? "[^@]+@.+";
    expect((await logged())[0]?.actor).toMatch(new RegExp(`^${named}$`));
  });

  it("is what the system says, and is refused with the variable's name where it is too long", async () => {
    const opened = (actor: string) =>
      assemble({ store: "memory:", log: "silent" }, { system: { ...realSystem, actor: () => actor }, process });
    const redrive = await opened("cron");
    await redrive.resume(QUEUE);
    expect((await redrive.events()).items.map(({ actor }) => actor)).toEqual(["cron", "cron"]);
    await expect(opened("x".repeat(256))).rejects.toThrow(/^REDRIVE_ACTOR: expected/);
  });

  it.each(["", "  ", "a\0", "x".repeat(256), 5])("is refused where it is %j", async (actor) => {
    const opened = assemble({ store: "memory:", actor: actor as string }, { system: realSystem, process });
    await expect(opened).rejects.toMatchObject({ code: "invalid_argument" });
  });
});
