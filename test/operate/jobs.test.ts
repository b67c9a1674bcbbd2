// Looking at jobs and changing what waits: by id, by several, by filter, and what is refused.
import { describe, expect, it } from "vitest";
import { defineJob, type JobTarget, type Redrive, type RescheduleOptions } from "../../src/index.ts";
import { codeOf, drain, type Kind, KINDS, openRedrive } from "../redrive/kinds.ts";

const mail = defineJob("mail", { run: (_input: object) => "sent" });
const NONE = { cancelled: 0, requested: 0, finished: 0, missing: 0 };

async function withJobs(kind: Kind, count: number): Promise<{ redrive: Redrive; ids: string[] }> {
  const redrive = await openRedrive(kind, { jobs: [mail] });
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    const tenant = n % 2 === 0 ? "even" : "odd";
    ids.push((await redrive.enqueue(mail, { n }, { tenant, delay: n === 0 ? 0 : "1h" })).id);
  }
  return { redrive, ids };
}

describe.each(KINDS)("the event of a cancelled job on %s", (kind) => {
  it("comes once for every waiting job that was cancelled, with the job as it is then", async () => {
    const { redrive, ids } = await withJobs(kind, 3);
    const [first = "", second = "", third = ""] = ids;
    await redrive.jobs.cancel(third);
    const told: unknown[] = [];
    redrive.on("job.cancelled", ({ job, verdict }) => told.push([job, verdict]));
    expect(await redrive.jobs.cancel([first, second, first, third, "nobody"])).toEqual({
      ...NONE,
      cancelled: 2,
      finished: 2,
      missing: 1,
    });
    const jobs = await Promise.all([first, second].map((id) => redrive.jobs.get(id)));
    expect(jobs).toMatchObject([{ state: "cancelled" }, { state: "cancelled" }]);
    expect(told).toEqual(jobs.map((job) => [job, { kind: "cancel" }]));
  });

  it("reaches those who listen to everything, and nobody else any more", async () => {
    const { redrive, ids } = await withJobs(kind, 2);
    const kinds: string[] = [];
    const stop = redrive.on("*", (event) => kinds.push(event.kind));
    await redrive.jobs.cancel(ids[0] ?? "");
    stop();
    await redrive.jobs.cancel(ids[1] ?? "");
    expect(kinds).toEqual(["job.cancelled"]);
  });

  it("comes from the worker where the job runs, and only from there", async () => {
    let started = (): void => undefined;
    const running = new Promise<void>((resolve) => (started = resolve));
    const waiting = defineJob("waiting", {
      run: (_input: object, { signal }) => {
        started();
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
      },
    });
    const redrive = await openRedrive(kind, { jobs: [waiting] });
    const told: string[] = [];
    redrive.on("job.cancelled", ({ job }) => told.push(job.id));
    const { id } = await redrive.enqueue(waiting, {});
    await redrive.worker({ poll: 20, lease: "30s" }).start();
    await running;
    expect(await redrive.jobs.cancel(id)).toEqual({ ...NONE, requested: 1 });
    await expect.poll(() => told).toEqual([id]);
  });
});

describe.each(KINDS)("looking at jobs on %s", (kind) => {
  it("gives one, its history, or says that there is none", async () => {
    const { redrive, ids } = await withJobs(kind, 1);
    const [id = ""] = ids;
    expect((await redrive.jobs.get(id))?.id).toBe(id);
    expect(await redrive.jobs.show(id)).toMatchObject({ job: { id }, history: [] });
    expect(await redrive.jobs.get("nobody")).toBeNull();
    expect(await codeOf(() => redrive.jobs.show("nobody"))).toBe("not_found");
    for (const bad of ["", "x".repeat(65), null, 5])
      expect(await codeOf(() => redrive.jobs.get(bad as string))).toBe("invalid_argument");
  });

  it("lists by page, newest first, and all", async () => {
    const { redrive, ids } = await withJobs(kind, 5);
    const first = await redrive.jobs.list({ limit: 2 });
    const second = await redrive.jobs.list({ limit: 3, cursor: first.next });
    expect([...first.items, ...second.items].map(({ id }) => id)).toEqual(ids.toReversed());
    expect(second.next).toBeNull();
    const seen: string[] = [];
    for await (const { id } of redrive.jobs.all({ tenant: "odd" })) seen.push(id);
    expect(seen).toEqual([ids[3], ids[1]]);
  });

  it("narrows by every field", async () => {
    const { redrive, ids } = await withJobs(kind, 3);
    const other = await redrive.enqueue("other", {}, { queue: "q", service: "s", key: "k" });
    const idsOf = async (query: Parameters<Redrive["jobs"]["list"]>[0]): Promise<string[]> =>
      (await redrive.jobs.list(query)).items.map(({ id }) => id).toSorted();
    for (const query of [{ type: "other" }, { queue: "q" }, { service: "s" }, { key: "k" }])
      expect(await idsOf(query)).toEqual([other.id]);
    expect(await idsOf({ due: true })).toEqual([ids[0] ?? "", other.id].toSorted());
    expect(await idsOf({ due: false })).toEqual(ids.slice(1).toSorted());
    expect(await idsOf({ tried: true })).toEqual([]);
    await drain(redrive);
    expect(await idsOf({ state: "completed" })).toEqual([ids[0]]);
  });

  it("rejects, rather than throws, for a filter it does not know", async () => {
    const { redrive } = await withJobs(kind, 0);
    for (const bad of [{ state: "sleeping" }, { typ: "mail" }, { type: 5 }, { due: "yes" }])
      expect(await codeOf(() => redrive.jobs.list(bad as object))).toBe("invalid_argument");
  });

  it("refuses pages of a size or place that cannot be", async () => {
    const { redrive } = await withJobs(kind, 0);
    for (const bad of [{ limit: 0 }, { limit: 201 }, { cursor: "?" }])
      expect(await codeOf(() => redrive.jobs.list(bad))).toBe("invalid_argument");
  });
});

describe.each(KINDS)("cancel on %s", (kind) => {
  it("takes an id, several, and says what became of each", async () => {
    const { redrive, ids } = await withJobs(kind, 4);
    const [a = "", b = "", c = ""] = ids;
    expect(await redrive.jobs.cancel(a)).toEqual({ ...NONE, cancelled: 1 });
    expect(await redrive.jobs.cancel([a, b, c, "nobody"])).toEqual({ ...NONE, cancelled: 2, finished: 1, missing: 1 });
    expect(await redrive.jobs.cancel([])).toEqual(NONE);
    expect((await redrive.jobs.count()).cancelled).toBe(3);
  });

  it("takes a filter, or all when that is said", async () => {
    const { redrive } = await withJobs(kind, 5);
    expect(await redrive.jobs.cancel({ tenant: "odd" })).toEqual({ ...NONE, cancelled: 2 });
    expect(await redrive.jobs.cancel({ tenant: "odd" })).toEqual(NONE);
    expect(await redrive.jobs.cancel({ all: true })).toEqual({ ...NONE, cancelled: 3 });
  });

  it("reaches more than one page", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail] });
    await redrive.enqueueMany(
      mail,
      Array.from({ length: 450 }, () => ({})),
    );
    expect(await redrive.jobs.cancel({ type: "mail" })).toEqual({ ...NONE, cancelled: 450 });
  });

  it("asks a running job to stop", async () => {
    let heard = false;
    const waiting = defineJob("waiting", {
      run: (_input: object, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            heard = true;
            reject(signal.reason as Error);
          });
        }),
    });
    const redrive = await openRedrive(kind, { jobs: [waiting] });
    await redrive.worker({ lease: "30s", heartbeat: 50 }).start();
    const { id } = await redrive.enqueue(waiting, {});
    await expect.poll(async () => (await redrive.jobs.get(id))?.state).toBe("running");
    expect(await redrive.jobs.cancel({ type: "waiting" })).toEqual({ ...NONE, requested: 1 });
    await expect.poll(async () => (await redrive.jobs.get(id))?.state).toBe("cancelled");
    expect(heard).toBe(true);
  });

  it("refuses a target that says nothing, or what it does not know", async () => {
    const { redrive } = await withJobs(kind, 2);
    for (const bad of [{}, { all: false }, { typ: "mail" }, { state: "x" }, "", [""], null, undefined, 5])
      expect(await codeOf(() => redrive.jobs.cancel(bad as JobTarget))).toBe("invalid_argument");
    expect((await redrive.jobs.count()).queued).toBe(2);
  });

  it("changes nothing when one of many ids is bad", async () => {
    const redrive = await openRedrive(kind, { jobs: [mail] });
    const ids: string[] = [];
    const onChunk = (jobs: readonly { id: string }[]): void => void ids.push(...jobs.map(({ id }) => id));
    await redrive.enqueueMany(
      mail,
      Array.from({ length: 200 }, () => ({})),
      { onChunk },
    );
    expect(await codeOf(() => redrive.jobs.cancel([...ids, ""]))).toBe("invalid_argument");
    expect((await redrive.jobs.count()).cancelled).toBe(0);
  });
});

describe.each(KINDS)("reschedule on %s", (kind) => {
  it("changes due time and priority of what waits", async () => {
    const { redrive, ids } = await withJobs(kind, 3);
    const [a = "", b = "", c = ""] = ids;
    expect(await redrive.jobs.reschedule([b, "nobody"], { delay: 0, priority: 4 })).toEqual({
      changed: 1,
      refused: 0,
      missing: 1,
    });
    const at = Date.UTC(2030, 0, 1);
    expect(await redrive.jobs.reschedule(c, { runAt: new Date(at) })).toMatchObject({ changed: 1 });
    expect(Math.abs(((await redrive.jobs.get(c))?.runAt ?? 0) - at)).toBeLessThan(1_000);
    expect(await drain(redrive)).toMatchObject({ completed: 2 });
    expect((await redrive.jobs.get(b))?.priority).toBe(4);
    expect(await redrive.jobs.reschedule(a, { delay: 0 })).toMatchObject({ refused: 1 });
  });

  it("takes a filter, and a time that is past as now", async () => {
    const { redrive } = await withJobs(kind, 5);
    expect(await redrive.jobs.reschedule({ tenant: "odd" }, { runAt: 0 })).toMatchObject({ changed: 2 });
    expect(await drain(redrive)).toMatchObject({ completed: 3 });
  });

  const bad: RescheduleOptions[] = [
    {},
    { delay: 0, runAt: 0 },
    { delay: "soon" },
    { delay: -1 },
    { runAt: "tomorrow" },
    { priority: 10 },
    { priorty: 1 } as RescheduleOptions,
    null as unknown as RescheduleOptions,
  ];
  it("refuses changes that cannot be, and targets that say nothing", async () => {
    const { redrive, ids } = await withJobs(kind, 1);
    for (const change of bad) expect(await codeOf(() => redrive.jobs.reschedule(ids, change))).toBe("invalid_argument");
    expect(await codeOf(() => redrive.jobs.reschedule({}, { delay: 0 }))).toBe("invalid_argument");
  });
});
