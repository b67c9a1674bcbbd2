// A store of the version before is migrated while two workers of that version are at work. Nothing is lost, and the counts
// are right; those of version 1 did not count, and a recount mends that. `npm run prove -- upgrade` does it with 100,000
// jobs and also judges how long the workers stood still.
import { performance } from "node:perf_hooks";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Redrive } from "../../src/index.ts";
import { MIGRATIONS } from "../../src/store/sqlite/schema.ts";
import { importBuilt } from "../support/built.ts";
import { FIXTURES, type FrozenVersion } from "../support/fixtures.ts";
import { olderLibrary, startOld } from "../support/older-version.ts";

const { createRedrive, defineJob } = await importBuilt<typeof import("../../src/index.ts")>("index.js");

const asked = process.env["REDRIVE_PROVE"] === "upgrade";
const only = process.env["REDRIVE_PROVE_STORE"];
const JOBS = Number(process.env["REDRIVE_PROVE_JOBS"] ?? 1_000);
const LETTERS = Number(process.env["REDRIVE_PROVE_LETTERS"] ?? 100);
/** A proof has work for many seconds, a test for about one. */
const WORK = { runMs: asked ? 5 : 10, badEach: 10, retried: 20 };
const CAUSES = 7;
/** The version that this release knows. */
const KNOWN = MIGRATIONS.length;
/** The version of the older workers. */
const FROM = Number(process.env["REDRIVE_PROVE_FROM"] ?? KNOWN - 1) as FrozenVersion;
const STILL_MOST_MS = 5_000;
const STEPS_MOST = 1_000;
/** Jobs that come after the migration, before all others: only the older workers are there to run them. */
const URGENT = 100;
const THINGS = JOBS - LETTERS + URGENT;

type Rows = (text: string) => Promise<unknown[][]>;
type Began = [n: number, at: number][];

/** Live letters by cause, counted one by one. */
async function lettersOf(rows: Rows): Promise<Map<string, number>> {
  const found = await rows("select fingerprint, count(*) from dead_letters where redriven_at is null group by 1");
  return new Map(found.map(([fingerprint, count]) => [String(fingerprint), Number(count)]));
}

/** Live letters by cause, by the counts. */
async function countedBy({ store }: Redrive): Promise<Map<string, number>> {
  const { items } = await store.causes({ limit: 200 });
  return new Map(items.map(({ fingerprint, live }) => [fingerprint, live]));
}

async function recount({ store }: Redrive): Promise<number> {
  let mended = 0;
  for (let [after, steps] = ["" as string | null, 0]; after !== null && steps < STEPS_MOST; steps++) {
    const answer = await store.recount({ after, limit: 100 });
    [mended, after] = [mended + answer.mended, answer.next];
  }
  return mended;
}

/** The longest time in this span in which none of the runs began, in milliseconds. */
function stillIn(began: Began, from: number, until: number): number {
  const times = began.map(([, at]) => at).sort((a, b) => a - b);
  const gaps = times.map((at, index): [number, number] => [at, times[index + 1] ?? at]);
  return Math.max(0, ...gaps.filter(([begin, end]) => end > from && begin < until).map(([begin, end]) => end - begin));
}

const ended = async (rows: Rows): Promise<number> =>
  Number((await rows("select count(*) from jobs where type = 'thing' and finished_at is not null"))[0]?.[0]);

async function atLeast(rows: Rows, share: number): Promise<void> {
  await expect
    .poll(() => ended(rows), { timeout: 300_000, interval: asked ? 200 : 20 })
    .toBeGreaterThan((JOBS - LETTERS) * share);
}

/** What the store has of the jobs that the older version has enqueued. */
async function contents(rows: Rows): Promise<Record<string, number>> {
  const found = await rows("select type, state, count(*) from jobs where type in ('thing', 'doomed') group by 1, 2");
  return Object.fromEntries(found.map(([type, state, count]) => [`${String(type)} ${String(state)}`, Number(count)]));
}

describe.each(FIXTURES.filter(([store]) => only === undefined || store === only))("on %s", (name, fixture) => {
  it(`a migration beside two workers of version ${FROM} loses nothing`, { timeout: 900_000 }, async () => {
    const { url, rows } = await fixture(FROM);
    const library = olderLibrary(FROM);
    await startOld(library, url, "fill", { jobs: JOBS, letters: LETTERS, causes: CAUSES }).answer("filled");
    const doomed = await lettersOf(rows);
    const version = async (): Promise<number> => Number((await rows("select max(version) from migration"))[0]?.[0]);
    expect(await version()).toBe(FROM);
    const old = [startOld(library, url, "work", WORK), startOld(library, url, "work", WORK)];
    await Promise.all(old.map((each) => each.answer("started")));
    await atLeast(rows, 0.1);

    const ran: number[] = [];
    const jobs = [
      defineJob("doomed", { run: () => undefined }),
      defineJob("thing", { run: ({ n }: { n: number }) => void ran.push(n) }),
    ];
    const from = Date.now();
    const began = performance.now();
    const redrive = await createRedrive({ store: url, jobs, log: "silent" });
    const migratedMs = performance.now() - began;
    onTestFinished(() => redrive.close());
    const until = Date.now();
    expect(await version()).toBe(KNOWN);
    // Of the causes that no worker adds to, all letters are counted; of the other one those from before the migration.
    const counted = await countedBy(redrive);
    for (const [cause, letters] of doomed) expect(counted.get(cause), cause).toBe(letters);

    old[0]?.say("retry");
    const retried = await old[0]?.answer<number>("retried");
    for (let n = JOBS - LETTERS; n < THINGS; n++) await redrive.enqueue("thing", { n }, { priority: 9 });
    const done = "select count(*) from jobs where type = 'thing' and priority = 9 and finished_at is not null";
    await expect.poll(async () => Number((await rows(done))[0]?.[0]), { timeout: 300_000 }).toBe(URGENT);
    await atLeast(rows, 0.5);
    for (const each of old) each.say("stop");
    const runs = await Promise.all(old.map((each) => each.answer<Began>("began")));
    const before = await countedBy(redrive);
    const real = await lettersOf(rows);
    const uncounted = [...real].filter(([cause, letters]) => before.get(cause) !== letters);
    const mended = await recount(redrive);
    expect(retried).toBeGreaterThan(0);
    if (FROM === 1) {
      // Workers of version 1 count nothing.
      expect(uncounted.length).toBeGreaterThan(1);
      expect(mended).toBeGreaterThan(retried as number);
    } else expect({ uncounted, mended }).toEqual({ uncounted: [], mended: 0 });
    expect(await countedBy(redrive)).toEqual(real);

    await redrive.worker({ concurrency: 50, release: "2.0.0" }).drain({ grace: 0 });
    const all = [...runs.flat().map(([n]) => n), ...ran];
    const lost = THINGS - new Set(all).size;
    const still = runs.map((each) => stillIn(each, from - 1_000, until + 1_000));
    // Jobs that the older workers have dead-lettered; in this version the same ones complete.
    const bad = [...real].reduce((sum, [cause, letters]) => sum + (doomed.has(cause) ? 0 : letters), 0);
    if (asked)
      console.log(
        JSON.stringify({
          store: name,
          jobs: JOBS,
          letters: LETTERS,
          migratedMs: Math.round(migratedMs),
          standStillMs: still,
          byOlderVersion: runs.flat().length,
          byThisVersion: ran.length,
          lost,
          twice: all.length - new Set(all).size,
          mended,
        }),
      );
    expect(lost).toBe(0);
    expect(await contents(rows)).toEqual({
      "doomed dead": LETTERS - (retried as number),
      "doomed completed": retried,
      "thing dead": bad,
      "thing completed": THINGS - bad,
    });
    if (asked) expect(Math.max(...still)).toBeLessThanOrEqual(STILL_MOST_MS);
  });
});
