// Programs of two releases on one store: side by side as long as the newer schema is readable by the older program, and not
// at all where it is not.
import { describe, expect, it, onTestFinished } from "vitest";
import { createRedrive, defineJob, type Redrive } from "../../src/index.ts";
import type { Store } from "../../src/store/store.ts";
import { collectLog } from "../../src/testing/collect-log.ts";
import { newJob } from "../support/new-job.ts";
import { KNOWN, NEXT, RELEASE_PLACES, VERSIONS } from "../support/releases.ts";

const REFUSED = {
  code: "store_unusable",
  message: expect.stringContaining(
    `has schema version ${NEXT}, for programs that know version ${NEXT} or newer; this Redrive knows versions up to ${KNOWN}. Update redrive, or restore a backup from before the upgrade.`,
  ) as string,
};

/** A program with one job type, which notes what it ran. */
async function program(store: Store) {
  const ran: number[] = [];
  const log = collectLog();
  const job = defineJob("thing", {
    run: ({ n }: { n: number }) => {
      ran.push(n);
    },
  });
  const redrive: Redrive = await createRedrive({ store, jobs: [job], log });
  onTestFinished(() => redrive.close());
  return { redrive, job, ran, log };
}

describe.each(RELEASE_PLACES)("on %s", (_store, place) => {
  it("two releases share a store that both may read, and nothing is lost or done twice", async () => {
    const { open, openNext, versions, added } = place();
    const older = await program(open());
    await older.redrive.enqueueMany(older.job, [{ n: 0 }, { n: 1 }]);
    const newer = await program(openNext(KNOWN));
    expect(await versions()).toEqual([...VERSIONS, [NEXT, KNOWN]]);
    expect(await added()).toEqual(["color"]);
    const programs = [older, newer];
    const inputs = (from: number) => Array.from({ length: 50 }, (_, n) => ({ n: from + n }));
    await Promise.all(programs.map(({ redrive, job }, at) => redrive.enqueueMany(job, inputs(100 * (at + 1)))));
    await Promise.all(programs.map(({ redrive }) => redrive.worker({ concurrency: 2 }).drain({ grace: 0 })));
    const all = [...older.ran, ...newer.ran].toSorted((a, b) => a - b);
    expect(all).toEqual([0, 1, ...inputs(100).map(({ n }) => n), ...inputs(200).map(({ n }) => n)]);
    expect(await newer.redrive.store.count()).toMatchObject({ queued: 0, running: 0, completed: 102 });
  });

  it("an upgrade is rolled back by starting the older program, which says so once", async () => {
    const { open, openNext, versions } = place();
    const newer = await program(openNext(KNOWN));
    await newer.redrive.enqueue(newer.job, { n: 7 });
    const older = await program(open());
    expect(await older.redrive.worker().drain({ grace: 0 })).toMatchObject({ completed: 1 });
    expect(older.ran).toEqual([7]);
    const told = older.log.said(`schema version ${NEXT}, newer than version ${KNOWN} of this redrive`);
    expect(told.map(({ level }) => level)).toEqual(["info"]);
    expect(newer.log.lines).toEqual([]);
    expect((await versions()).length).toBe(NEXT);
  });

  it("an older program is refused where it may not read, and nothing is changed", async () => {
    const { open, openNext, versions } = place();
    const newer = openNext(NEXT);
    await newer.enqueue([newJob()]);
    const before = await versions();
    const opened = async (): Promise<unknown> => createRedrive({ store: open(), log: "silent" });
    await expect(opened()).rejects.toMatchObject(REFUSED);
    expect(await versions()).toEqual(before);
    expect(await newer.count()).toMatchObject({ queued: 1 });
  });

  it("an older worker that runs when its store goes beyond it takes no more, and others get its run", async () => {
    const { open, openNext } = place();
    const log = collectLog();
    const began: string[] = [];
    const jobOf = (program: string, run: () => Promise<void>) =>
      defineJob("thing", {
        run: async () => {
          began.push(program);
          await run();
        },
      });
    const hung = jobOf("older", () => new Promise(() => undefined));
    const older = await createRedrive({ store: open(), jobs: [hung], log });
    onTestFinished(() => older.close());
    await older.enqueue(hung, {});
    const times = { lease: 2_000, heartbeat: 100, poll: 50 };
    const worker = older.worker({ ...times, concurrency: 2, abortGrace: 0 });
    await worker.start();
    onTestFinished(() => worker.stop({ within: 0 }));
    await expect.poll(() => began).toEqual(["older"]);

    const newer = await createRedrive({ store: openNext(NEXT), jobs: [jobOf("newer", async () => {})], log: "silent" });
    onTestFinished(() => newer.close());
    await newer.enqueueMany("thing", [{}, {}, {}]);
    await newer.worker(times).start();
    await expect.poll(() => newer.store.count()).toMatchObject({ completed: 4 });
    expect(began).toEqual(["older", "newer", "newer", "newer", "newer"]);
    expect(log.said("Update redrive").length).toBeGreaterThan(0);
    await expect(older.store.count()).rejects.toMatchObject(REFUSED);
  });
});
