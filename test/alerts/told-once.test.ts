// Each alert is told once per fleet; after the death of the process that tells, at most twice, and never not at all. A
// process is ended before and after every call that it makes: to the store, and to its sink.
import { describe, expect, it } from "vitest";
import { openAlerting } from "../../src/alerts/alerting.ts";
import { look, type LookParts, tellAll } from "../../src/alerts/look.ts";
import { eventSink, type AlertSink } from "../../src/alerts/sinks.ts";
import type { AlertMessage } from "../../src/core/alerting/message.ts";
import { fieldsFrom } from "../../src/core/options.ts";
import { HEALTH_LIMITS } from "../../src/core/health.ts";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import type { Store } from "../../src/store/store.ts";
import { collectLog } from "../../src/testing/collect-log.ts";
import { finish } from "../support/runs.ts";
import { dead } from "../support/verdicts.ts";

const CLAIM_MS = 15_000;
const never = new AbortController().signal;
const { settings } = openAlerting({ rules: { deadLetters: { limit: 0 } } }, {});

function memory(): { readonly store: Store; readonly clock: { now: number } } {
  const clock = { now: 1_800_000_000_000 };
  return { store: createMemoryStore({ clock: () => clock.now }), clock };
}

/** A life of so many calls: the last one is made, and its caller does not live to hear the answer; then none is. */
function lifeOf(calls: number): <T>(work: () => Promise<T>) => Promise<T> {
  let left = calls;
  return async (work) => {
    left -= 1;
    if (left < 0) throw new Error("this process is dead");
    const answer = await work();
    if (left === 0) throw new Error("this process is dead");
    return answer;
  };
}

/** A process of a fleet; it dies after so many calls. */
function processOf(store: Store, told: AlertMessage[], name: string, calls = Number.POSITIVE_INFINITY): LookParts {
  const call = lifeOf(calls);
  const mortal = new Proxy(store, {
    get: (target, verb) => {
      const own = Reflect.get(target, verb) as unknown;
      return typeof own !== "function"
        ? own
        : (...args: unknown[]) => call(async () => Reflect.apply(own, target, args) as Promise<unknown>);
    },
  });
  const sink: AlertSink = {
    id: "list",
    name: "list",
    least: "info",
    tell: (message) => call(async () => (told.push(message), null)),
  };
  return {
    store: mortal,
    system: { monotonic: () => 0 },
    log: collectLog(),
    rules: settings.rules,
    health: HEALTH_LIMITS,
    sinks: [eventSink(mortal), sink],
    process: () => name,
    everyMs: 30_000,
    claimMs: CLAIM_MS,
  };
}

async function turn(parts: LookParts): Promise<void> {
  await tellAll(parts, await look(parts, true), never);
}

async function eventsOf(store: Store): Promise<string[]> {
  const { items } = await store.events({ limit: 50 });
  return items.flatMap(({ kind, value }) =>
    kind.startsWith("alert.") ? [`${kind} ${String(fieldsFrom(value).id)}`] : [],
  );
}

describe("alerts of a fleet", () => {
  it("are told once, however many processes look", async () => {
    const { store, clock } = memory();
    await finish(store, dead(), { type: "mail" });
    const told: AlertMessage[] = [];
    const fleet = ["a", "b", "c"].map((name) => processOf(store, told, name));
    for (let round = 0; round < 3; round += 1) {
      await Promise.all(fleet.map(turn));
      clock.now += 30_000;
    }
    expect(told.map(({ rule, kind }) => `${kind} ${rule}`).toSorted()).toEqual([
      "raised deadLetters",
      "raised newCause",
    ]);
    expect((await eventsOf(store)).toSorted()).toEqual(told.map(({ id }) => `alert.raised ${id}`).toSorted());
  });

  it("are told at most twice, and never left out, whenever the process that tells dies", async () => {
    const twice: number[] = [];
    let deaths = 0;
    for (let calls = 1; ; calls += 1) {
      const { store, clock } = memory();
      await finish(store, dead(), { type: "mail" });
      const told: AlertMessage[] = [];
      const isDead = await turn(processOf(store, told, "a", calls)).then(
        () => false,
        () => true,
      );
      // Too early: the intent of the dead process still stands.
      await turn(processOf(store, told, "b"));
      clock.now += CLAIM_MS;
      await turn(processOf(store, told, "c"));
      const times = ["newCause", "deadLetters"].map((rule) => told.filter((each) => each.rule === rule).length);
      expect({ calls, fewest: Math.min(...times) > 0, most: Math.max(...times) <= 2 }).toEqual({
        calls,
        fewest: true,
        most: true,
      });
      const events = await eventsOf(store);
      expect([calls, new Set(events).size, events.length]).toEqual([calls, 2, 2]);
      if (times.includes(2)) twice.push(calls);
      if (!isDead) break;
      deaths += 1;
    }
    expect(deaths).toBeGreaterThan(15);
    // Between the telling and its mark there is no way to know.
    expect(twice.length).toBeGreaterThan(0);
    expect(twice.length).toBeLessThan(deaths / 2);
  });

  it("that a sink refuses are told again, later and later, and the alert stays in the log", async () => {
    const { store, clock } = memory();
    await finish(store, dead(), { type: "mail" });
    const told: AlertMessage[] = [];
    let tries = 0;
    const own = processOf(store, told, "a");
    const sink: AlertSink = {
      id: "web",
      name: "webhook a.example",
      least: "info",
      tell: async () => ((tries += 1), "it answered 500"),
    };
    const log = collectLog();
    const parts = { ...own, log, sinks: [...own.sinks, sink] };
    const counts: number[] = [];
    for (let minute = 0; minute <= 16; minute += 1) {
      await turn(parts);
      counts.push(tries);
      clock.now += 60_000;
    }
    expect(told).toHaveLength(2);
    expect(counts).toEqual([1, 2, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 6]);
    expect(log.said("an alert could not be told to webhook a.example")).toMatchObject([
      { level: "warn", fields: { error: "it answered 500", alert: expect.stringContaining("1 dead letters wait") } },
    ]);
  });
});
