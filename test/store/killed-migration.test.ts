// Processes that migrate, killed in the middle or two at once: the schema is the old one or the new one, never something
// in between, and the store works.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { builtModule } from "../support/built.ts";
import { newJob } from "../support/new-job.ts";
import { sql } from "../support/postgres-world.ts";
import { KNOWN, NEXT, RELEASE_PLACES, type ReleasePlace, VERSIONS } from "../support/releases.ts";

const SCRIPT = fileURLToPath(new URL("../support/migrating-process.mjs", import.meta.url));
const LIBRARY = builtModule("index.js");

/** SQL of the next version that takes about a second, and writes so much that SQLite's log shows it. */
const SLOW = {
  sqlite: `alter table @job add column color text;
    create table @heap as with recursive n (i) as (select 1 union all select i + 1 from n where i < 1500000)
      select i, i || ' is a number' as said from n;`,
  postgres: "alter table @job add column color text; create table @heap (i int); select pg_sleep(1);",
};
const QUICK = "alter table @job add column color text; create table @heap (i int);";

/** A process of the next release that is about to migrate. */
async function startMigrating({ name, address }: ReleasePlace, planted: string) {
  const child: ChildProcess = fork(SCRIPT, [LIBRARY, name, address, planted], { execArgv: [], stdio: "inherit" });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "exit").then(([code]) => code as number | null);
  await Promise.race([
    once(child, "message"),
    ended.then((code) => Promise.reject(new Error(`It ended with ${code}.`))),
  ]);
  return { child, ended, go: () => child.send("go") };
}

/** A store of this version with a job in it. */
async function filled(place: () => ReleasePlace): Promise<ReleasePlace> {
  const made = place();
  const store = made.open();
  await store.enqueue([newJob()]);
  await store.close();
  return made;
}

/** True once the process is in the middle of its migration. */
async function isInTheMiddle({ name, address }: ReleasePlace): Promise<boolean> {
  if (name === "sqlite") return (statSync(`${address}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 1_000_000;
  const text = `select 1 from pg_locks l join pg_stat_activity a using (pid)
    where l.relation = '${schemaOf(address)}.job'::regclass and l.mode = 'AccessExclusiveLock' and a.wait_event = 'PgSleep'`;
  return (await sql(inject("postgres18"), text)).length > 0;
}

const schemaOf = (address: string): string => new URL(address).searchParams.get("schema") as string;

/** All of the next version is there, or nothing of it; the job is there, and both releases can work. */
async function works(place: ReleasePlace): Promise<number> {
  const versions = await place.versions();
  const version = versions.at(-1)?.[0] as number;
  expect([KNOWN, NEXT]).toContain(version);
  expect(await place.added()).toEqual(version === NEXT ? ["color"] : []);
  const older = place.open();
  await older.enqueue([newJob()]);
  expect((await older.count()).queued).toBeGreaterThan(1);
  return version;
}

describe.each(RELEASE_PLACES)("on %s", (_store, place) => {
  it("a process that is killed in the middle of a migration has changed nothing, and the next one migrates", async () => {
    const made = await filled(place);
    const migrating = await startMigrating(made, SLOW[made.name]);
    migrating.go();
    await expect.poll(() => isInTheMiddle(made), { interval: 5 }).toBe(true);
    migrating.child.kill("SIGKILL");
    await migrating.ended;
    expect(await works(made)).toBe(KNOWN);
    const newer = made.openNext(KNOWN);
    expect((await newer.count()).queued).toBe(2);
    expect(await works(made)).toBe(NEXT);
  });

  it("a process that is killed at any moment has migrated or not", async () => {
    for (const afterMs of [0, 2, 5, 10, 20]) {
      const made = await filled(place);
      const migrating = await startMigrating(made, QUICK);
      migrating.go();
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      migrating.child.kill("SIGKILL");
      await migrating.ended;
      await works(made);
    }
  });

  it("two processes that migrate at once do it once", async () => {
    const made = await filled(place);
    const both = [await startMigrating(made, SLOW[made.name]), await startMigrating(made, SLOW[made.name])];
    for (const { go } of both) go();
    expect(await Promise.all(both.map(({ ended }) => ended))).toEqual([0, 0]);
    expect(await made.versions()).toEqual([...VERSIONS, [NEXT, KNOWN]]);
    expect(await works(made)).toBe(NEXT);
  });
});
