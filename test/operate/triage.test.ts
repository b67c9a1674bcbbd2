// Triage on real stores: what workers, breakers, releases and redrives have left there becomes the advice for a cause.
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { defineJob, immediate, PermanentError, type Redrive } from "../../src/index.ts";
import { triageCauses } from "../../src/operate/triage.ts";
import { assemble } from "../../src/redrive.ts";
import { realSystem } from "../../src/system/real.ts";
import type { World } from "../conformance/suite.ts";
import { postgresWorld } from "../support/postgres-world.ts";
import { memoryWorld, sqliteWorld } from "../support/worlds.ts";

const WORLDS: readonly (readonly [string, () => Promise<World>])[] = [
  ["memory", memoryWorld],
  ["sqlite", sqliteWorld],
  ["postgres", () => postgresWorld(inject("postgres18"))],
];
const MINUTE = 60_000;

/** A queue whose jobs fail as long as the test says so. */
async function scene(open: () => Promise<World>) {
  const world = await open();
  const fails: { by: (() => Error) | null } = { by: null };
  const run = (): void => {
    if (fails.by) throw fails.by();
  };
  const charge = defineJob("charge", { maxAttempts: 1, backoff: immediate(), run });
  const process = { pid: globalThis.process.pid, host: "here", isAlive: () => true };
  const options = { store: world.store, jobs: [charge], log: "silent", actor: "ada" } as const;
  const redrive: Redrive = await assemble(options, { system: realSystem, process });
  onTestFinished(async () => {
    await redrive.close();
    await world.close();
  });
  return {
    redrive,
    later: (minutes: number) => void (world.clock.now += minutes * MINUTE),
    work: (release: string) => redrive.worker({ poll: 20, release }).drain({ grace: 0 }),
    add: (count: number, more: { readonly service?: string } = {}) =>
      redrive.enqueueMany(
        charge,
        Array.from({ length: count }, () => ({})),
        { each: () => more },
      ),
    /** Every job fails with this; null ends it. */
    break: (by: (() => Error) | null) => void (fails.by = by),
    async advised() {
      const [found] = await triageCauses(redrive);
      return found;
    },
  };
}

describe.each(WORLDS)("triage on %s", (_name, open) => {
  it("follows a bug from its first death to the letters that complete", async () => {
    const { redrive, later, work, add, break: breakBy, advised } = await scene(open);
    breakBy(() => new PermanentError("cannot read 'width' of undefined"));
    await add(53);
    await work("1.4.1");
    later(10);
    const bug = await advised();
    expect(bug).toMatchObject({ advice: "unknown", reason: "the newest release, 1.4.1, fails by it; it needs a fix" });
    expect(bug?.facts).toMatchObject({
      class: "permanent",
      reason: "permanent",
      live: 53,
      deaths: 53,
      releases: { failing: ["1.4.1"], seen: ["1.4.1"] },
      service: null,
      since: { completed: 0, failed: 0 },
      payloadBound: false,
    });
    await redrive.causes.fix(bug?.cause.fingerprint as string, { in: "1.4.0-fix" });
    expect(await advised()).toMatchObject({ reason: "it is fixed in 1.4.0-fix, which no worker has run yet" });
    breakBy(null);
    await add(3);
    await work("1.4.0-fix");
    expect(await advised()).toMatchObject({ advice: "canary", facts: { since: { completed: 3, failed: 0 } } });
    const { items } = await redrive.deadLetters.list({ limit: 60 });
    const ids = items.map(({ job }) => job.id);
    await redrive.deadLetters.retry(ids.slice(0, 5));
    expect(await advised()).toMatchObject({ advice: "wait", facts: { redriven: { completed: 0, none: 5 } } });
    await work("1.4.0-fix");
    expect(await advised()).toMatchObject({ advice: "canary", reason: "of 5 letters sent back 5 completed" });
    await redrive.deadLetters.retry(ids.slice(5, 50));
    await work("1.4.0-fix");
    const proven = await advised();
    expect(proven).toMatchObject({ advice: "canary", reason: "of 50 letters sent back 50 completed" });
    expect(proven?.facts).toMatchObject({ live: 3, redriven: { completed: 50, failing: 0, dead: 0, none: 0 } });
    // The next one fails again: the cause is back, and no letter should follow.
    breakBy(() => new PermanentError("cannot read 'width' of undefined"));
    await redrive.deadLetters.retry(ids.slice(50, 52));
    await work("1.4.0-fix");
    expect(await advised()).toMatchObject({ advice: "unknown", facts: { state: "regressed", redriven: { dead: 2 } } });
  });

  it("advises to repair payloads that are refused, and to wait for an open breaker", async () => {
    const { redrive, later, work, add, break: breakBy, advised } = await scene(open);
    breakBy(() => Object.assign(new Error("unprocessable"), { status: 422 }));
    await add(2);
    await work("1.0.0");
    later(10);
    const refused = await advised();
    expect(refused).toMatchObject({ advice: "repair", facts: { class: "validation", payloadBound: true } });
    await redrive.deadLetters.remove({ all: true });
    breakBy(() => Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }));
    await add(2, { service: "bank" });
    await work("1.0.0");
    later(10);
    const down = await advised();
    expect(down?.facts.service).toEqual({ name: "bank", breaker: "closed", closedAt: null, successes: 0 });
    await redrive.breakers.open("bank", { reason: "down" });
    expect(await advised()).toMatchObject({ advice: "wait", reason: "the breaker of bank is open" });
    await redrive.breakers.reset("bank");
    breakBy(null);
    await add(25, { service: "bank" });
    await work("1.0.0");
    const back = await advised();
    expect(back).toMatchObject({ advice: "redrive", facts: { class: "network", since: { completed: 25, failed: 0 } } });
    expect(back?.facts.service?.closedAt).toBeGreaterThan(back?.facts.lastAt as number);
  });
});
