// Two programs with different job types on one store, each with its own upkeep: neither deletes what the other keeps.
import { afterEach, describe, expect, inject, it } from "vitest";
import { batchJob } from "../../src/batch-command/batch-run.ts";
import type { DeadLetter } from "../../src/core/job.ts";
import { PRESETS } from "../../src/core/policy.ts";
import { verdict } from "../../src/core/verdict.ts";
import { defineJob, type JobDefinition } from "../../src/jobs/define-job.ts";
import { knownType, newJobOf } from "../../src/enqueue/new-jobs.ts";
import { realSystem } from "../../src/system/real.ts";
import { applyRetention, type RetentionOptions, retentionService } from "../../src/upkeep/retention.ts";
import { withTypeLimits } from "../../src/worker/type-limits.ts";
import type { World } from "../conformance/suite.ts";
import { nextId } from "../support/new-job.ts";
import { postgresWorld } from "../support/postgres-world.ts";
import { signUp, takeOne } from "../support/runs.ts";
import { failure } from "../support/verdicts.ts";
import { memoryWorld, sqliteWorld } from "../support/worlds.ts";

const DAY = 86_400_000;
const run = (): void => undefined;
const ledger = defineJob("ledger", { keep: { finished: "90d", dead: "180d" }, maxAttempts: 1, run });
const mail = defineJob("mail", { run });

/** The upkeep of a program that defines these types, as it is when the program starts. */
function upkeepOf({ store }: World, jobs: readonly JobDefinition[], archive: RetentionOptions["archive"] = null) {
  const options = { store, system: realSystem, jobs, policy: PRESETS.default, archive, onPruned: () => undefined };
  const service = retentionService(options);
  return {
    start: () => service.step(new AbortController().signal),
    clean: () => applyRetention(options),
  };
}

/** Enqueues a job of a type, known by its definition or by name, and has a worker of the type run it to its end. */
async function ended(
  { store, clock }: World,
  type: JobDefinition,
  known: "defined" | "by name",
  well = true,
): Promise<string> {
  const id = nextId();
  await store.enqueue([newJobOf(knownType(known === "defined" ? type : type.type, {}), "{}", id)]);
  const own = withTypeLimits(store, [type]);
  const job = await takeOne(own, id, await signUp(store));
  const outcome = well ? { kind: "completed" as const, result: null } : { kind: "failed" as const, failure: failure() };
  const answer = verdict(job, outcome, type.policy, clock.now, () => 0);
  await store.settle({ settlements: [{ ...job, verdict: answer }] });
  return id;
}

const WORLDS: readonly (readonly [string, () => Promise<World>])[] = [
  ["memory", memoryWorld],
  ["sqlite", sqliteWorld],
  ["postgres", () => postgresWorld(inject("postgres18"))],
];

describe.each(WORLDS)("two programs on %s", (_, open) => {
  const opened: World[] = [];
  const begin = async (): Promise<World> => {
    const world = await open();
    opened.push(world);
    return world;
  };
  afterEach(() => Promise.all(opened.splice(0).map((world) => world.close())));
  const statesOf = async ({ store }: World, ids: readonly string[]) =>
    (await store.get(ids)).map((job) => job?.state ?? null);

  it("delete nothing of the other's before its time, however it was enqueued", async () => {
    const world = await begin();
    const [ours, theirs] = [upkeepOf(world, [mail]), upkeepOf(world, [ledger])];
    await ours.start();
    await theirs.start();
    const ids = [
      await ended(world, ledger, "defined"),
      await ended(world, ledger, "by name"),
      await ended(world, ledger, "defined", false),
      await ended(world, ledger, "by name", false),
    ];
    world.clock.now += 90 * DAY - 1;
    await ours.clean();
    expect(await statesOf(world, ids)).toEqual(["completed", "completed", "dead", "dead"]);
    world.clock.now += 1;
    await ours.clean();
    expect(await statesOf(world, ids)).toEqual([null, null, "dead", "dead"]);
    world.clock.now += 90 * DAY;
    await ours.clean();
    expect(await statesOf(world, ids)).toEqual([null, null, null, null]);
  });

  it("leave the done items of a batch that is not finished", async () => {
    const world = await begin();
    const plan = { name: "b", items: ["1", "2"], isExact: true, size: 1, retrySize: 1, maxRetries: 0, parallel: 1 };
    const begun = { run: 1, digest: "", items: 2, maxRetries: 0, rounds: 0, firstPassMs: 0, retryMs: 0, isDone: false };
    const item = batchJob({ ...plan, run: async () => undefined as never }, begun);
    const id = await ended(world, item, "defined");
    world.clock.now += 30 * DAY - 1;
    const ours = upkeepOf(world, [mail]);
    await ours.start();
    await ours.clean();
    expect(await statesOf(world, [id])).toEqual(["completed"]);
  });

  it("keep what ended by nobody's verdict as its type says, also while no program of the type runs", async () => {
    const world = await begin();
    await upkeepOf(world, [ledger]).start();
    const id = nextId();
    await world.store.enqueue([newJobOf(knownType("ledger", {}), "{}", id)]);
    await world.store.cancel([id]);
    world.clock.now += 90 * DAY - 1;
    const ours = upkeepOf(world, [mail]);
    await ours.clean();
    expect(await statesOf(world, [id])).toEqual(["cancelled"]);
    world.clock.now += 1;
    await ours.clean();
    expect(await statesOf(world, [id])).toEqual([null]);
  });

  it("keep a type that no program has told of as long as any type is kept", async () => {
    const world = await begin();
    await upkeepOf(world, [ledger]).start();
    const id = nextId();
    await world.store.enqueue([newJobOf(knownType("unheard-of", {}), "{}", id)]);
    await world.store.cancel([id]);
    world.clock.now += 90 * DAY - 1;
    await upkeepOf(world, [mail]).clean();
    expect(await statesOf(world, [id])).toEqual(["cancelled"]);
  });

  it("remember what a type said while a worker of it lives, and for 30 days after", async () => {
    const world = await begin();
    const [ours, theirs] = [upkeepOf(world, [mail]), upkeepOf(world, [ledger])];
    await theirs.start();
    const types = async () => (await world.store.cells([{ kind: "keep" }])).cells.map(({ name }) => name);
    for (let day = 0; day < 40; day++) {
      world.clock.now += DAY;
      await theirs.clean();
    }
    expect(await types()).toEqual(["ledger"]);
    world.clock.now += 30 * DAY - 1;
    await ours.clean();
    expect(await types()).toEqual(["ledger", "mail"]);
    world.clock.now += 1;
    await ours.clean();
    expect(await types()).toEqual(["mail"]);
  });

  it("go by the program that started last where two define a type differently", async () => {
    const world = await begin();
    const before = upkeepOf(world, [ledger]);
    await before.start();
    const changed = defineJob("ledger", { keep: { finished: "200d", dead: "180d" }, run });
    await upkeepOf(world, [changed]).start();
    world.clock.now += 2 * DAY;
    await before.clean();
    const { cells } = await world.store.cells([{ kind: "keep" }]);
    expect(cells.map(({ value }) => JSON.parse(value) as unknown)).toEqual([
      { finishedMs: 200 * DAY, deadMs: 180 * DAY },
    ]);
  });

  it.each([
    ["longer", "200d", 199],
    ["shorter", "2d", 1],
  ])("go by what the type says once it says %s", async (_word, finished, days) => {
    const world = await begin();
    await upkeepOf(world, [ledger]).start();
    const id = await ended(world, ledger, "defined");
    const changed = defineJob("ledger", { keep: { finished, dead: "180d" }, run });
    const again = upkeepOf(world, [changed]);
    await again.start();
    world.clock.now += days * DAY;
    await upkeepOf(world, [mail]).clean();
    expect(await statesOf(world, [id])).toEqual(["completed"]);
    world.clock.now += DAY;
    await upkeepOf(world, [mail]).clean();
    expect(await statesOf(world, [id])).toEqual([null]);
  });

  it("leave dead letters with an archive to whoever has it", async () => {
    const world = await begin();
    const kept: DeadLetter[] = [];
    const archivist = upkeepOf(world, [ledger], async (letters) => void kept.push(...letters));
    await archivist.start();
    const ids = [await ended(world, ledger, "defined", false), await ended(world, ledger, "by name", false)];
    world.clock.now += 180 * DAY;
    // One that knows nothing of the type, and one of the same type without the archive.
    await upkeepOf(world, [mail]).clean();
    const same = upkeepOf(world, [ledger]);
    await same.start();
    await same.clean();
    expect(await statesOf(world, ids)).toEqual(["dead", "dead"]);
    await archivist.clean();
    expect(await statesOf(world, ids)).toEqual([null, null]);
    expect(kept.map(({ job }) => job.id).sort()).toEqual([...ids].sort());
  });

  it("archive nothing of the other's", async () => {
    const world = await begin();
    const kept: DeadLetter[] = [];
    const archivist = upkeepOf(world, [mail], async (letters) => void kept.push(...letters));
    await upkeepOf(world, [ledger]).start();
    const id = await ended(world, ledger, "defined", false);
    world.clock.now += 180 * DAY - 1;
    await archivist.start();
    await archivist.clean();
    expect(await statesOf(world, [id])).toEqual(["dead"]);
    world.clock.now += 1;
    await archivist.clean();
    expect(await statesOf(world, [id])).toEqual([null]);
    expect(kept).toEqual([]);
  });
});
