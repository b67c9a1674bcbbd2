// The rows behind repairs: a payload and its versions are written in one commit or not at all, and go with their job.
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { Job } from "../../src/core/job.ts";
import { PRESETS } from "../../src/core/policy.ts";
import { payloadHash } from "../../src/store/payloads.ts";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { createInlineSqliteStore } from "../../src/store/sqlite/inline.ts";
import type { Retention, Store } from "../../src/store/store.ts";
import { realSystem } from "../../src/system/real.ts";
import { applyRetention } from "../../src/upkeep/retention.ts";
import { testPath } from "../support/database-file.ts";
import { storeBeside } from "../support/postgres-world.ts";
import { finish, read } from "../support/runs.ts";
import { dead } from "../support/verdicts.ts";

const FORGET: Retention = { keep: { finishedMs: 0, deadMs: 0 }, types: [], keyMs: 0, limit: 1_000, isFirst: true };

interface Scene {
  readonly store: Store;
  /** Makes every write of the payload `"bad"` fail. */
  refuseBad(): Promise<void>;
  /** All rows of versions. */
  versions(): Promise<number>;
}

const SCENES: Readonly<Record<string, () => Promise<Scene>>> = {
  async sqlite() {
    const path = testPath();
    const store = createInlineSqliteStore({ path, clock: Date.now });
    await store.migrate();
    const db = openDatabase(path);
    onTestFinished(async () => {
      db.close();
      await store.close();
    });
    return {
      store,
      refuseBad: async () =>
        db.exec(`create trigger bad before update of payload on job when new.payload = '"bad"'
          begin select raise(abort, 'bad payload'); end`),
      versions: async () => db.prepare("select count(*) from payload_version").all()[0]?.[0] as number,
    };
  },
  async postgres() {
    const { store, client, s } = await storeBeside(inject("postgres18"));
    return {
      store,
      async refuseBad() {
        await client.query(`create function ${s}.bad() returns trigger language plpgsql as
          $$ begin raise exception 'bad payload'; end $$`);
        await client.query(`create trigger bad before update of payload on ${s}.job for each row
          when (new.payload = '"bad"') execute function ${s}.bad()`);
      },
      versions: async () => Number((await client.query(`select count(*) as n from ${s}.payload_version`)).rows[0].n),
    };
  },
};

const changeOf = ({ id, generation, payload: before }: Job, payload: string) => ({
  id,
  generation,
  was: payloadHash(before),
  payload,
  actor: "ada",
  why: null,
});

describe.each(Object.keys(SCENES))("on %s", (name) => {
  const open = SCENES[name] as () => Promise<Scene>;

  it("a repair that fails has written neither payloads nor versions", async () => {
    const { store, refuseBad, versions } = await open();
    const [good, bad] = [await finish(store, dead()), await finish(store, dead())];
    await refuseBad();
    await expect(store.repair([changeOf(good, '"good"'), changeOf(bad, '"bad"')])).rejects.toThrow(/bad payload/);
    expect(await versions()).toBe(0);
    expect(await read(store, good.id)).toStrictEqual(good);
    expect(await store.repair([changeOf(good, '"good"')])).toEqual(["repaired"]);
    expect(await versions()).toBe(2);
  });

  it("a redrive that fails has sent nothing and written no version", async () => {
    const { store, refuseBad, versions } = await open();
    const [good, bad] = [await finish(store, dead()), await finish(store, dead())];
    await refuseBad();
    const request = ({ id, generation }: Job, payload: string) => ({ id, generation, delayMs: 0, payload });
    await expect(store.redrive([request(good, '"good"'), request(bad, '"bad"')])).rejects.toThrow(/bad payload/);
    expect(await versions()).toBe(0);
    for (const job of [good, bad]) expect(await read(store, job.id)).toStrictEqual(job);
  });

  it("a recall whose payload cannot be written has not taken the job back", async () => {
    const { store, refuseBad, versions } = await open();
    const job = await finish(store, dead());
    await store.redrive([{ id: job.id, generation: job.generation, delayMs: 0, payload: '"good"' }]);
    const queued = await read(store, job.id);
    await refuseBad();
    const repair = { was: payloadHash('"good"'), payload: '"bad"', actor: "ada", why: null };
    const target = { id: job.id, generation: job.generation };
    await expect(store.recall([{ ...target, repair }])).rejects.toThrow(/bad payload/);
    expect(await read(store, job.id)).toStrictEqual(queued);
    expect(await versions()).toBe(2);
    expect(await store.recall([{ ...target, repair: { ...repair, payload: job.payload } }])).toEqual(["recalled"]);
    expect(await read(store, job.id)).toMatchObject({ state: "dead", payload: job.payload });
  });

  it("upkeep deletes versions with their job when it has expired, and leaves those of others", async () => {
    const { store, versions } = await open();
    const [short, long] = [
      await finish(store, dead(), { keepDeadMs: 1 }),
      await finish(store, dead(), { keepDeadMs: 3_600_000 }),
    ];
    await store.repair([changeOf(short, "1"), changeOf(long, "2")]);
    expect(await versions()).toBe(4);
    const policy = { ...PRESETS.default, keepDeadMs: 3_600_000 };
    const upkeep = { store, system: realSystem, jobs: [], policy, archive: null, onPruned: () => undefined };
    const pruned = async (): Promise<unknown> => {
      await applyRetention(upkeep);
      return (await store.get([short.id]))[0];
    };
    await expect.poll(pruned, { timeout: 20_000, interval: 10 }).toBeNull();
    expect(await versions()).toBe(2);
    expect(await store.payloads(long.id)).toHaveLength(2);
  });

  it("versions go with their job, removed or pruned", async () => {
    const { store, versions } = await open();
    const [removed, pruned] = [await finish(store, dead()), await finish(store, dead())];
    await store.repair([changeOf(removed, "1"), changeOf(pruned, "2")]);
    expect(await versions()).toBe(4);
    await store.remove([removed.id]);
    expect(await versions()).toBe(2);
    for (let more = true; more; ) ({ more } = await store.prune(FORGET));
    expect(await versions()).toBe(0);
  });
});
