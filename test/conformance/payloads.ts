// Repairs of payloads: who may change which, what is kept, and that nothing else of the job changes.
import { expect } from "vitest";
import type { Job } from "../../src/core/job.ts";
import { payloadHash } from "../../src/store/payloads.ts";
import type { PayloadChange, Retention, Store } from "../../src/store/store.ts";
import { digestOf, newJob } from "../support/new-job.ts";
import { end, finish, inState, read, take, takeOne } from "../support/runs.ts";
import { complete, dead } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

/** Everything that parsing and writing again would change. */
const ODD = ' { "id" : 9007199254740993 , "n":1e400, "s":"\\ud800", "a":1, "a":2, "\\u0061b":"\\/", "z":-0.0 }\n';
const FORGET: Retention = { keep: { finishedMs: 0, deadMs: 0 }, types: [], keyMs: 0, limit: 1_000, isFirst: true };

function changeOf({ id, generation, payload: before }: Job, payload: string, more: Partial<PayloadChange> = {}) {
  return { id, generation, was: payloadHash(before), payload, actor: "ada@desk", why: null, ...more };
}

async function payloadsOf(store: Store, id: string): Promise<string[]> {
  return (await store.payloads(id)).map(({ payload }) => payload);
}

/** Tests of repairs. */
export function payloadFacts({ fact, timed }: Suite): void {
  timed("gives a dead job another payload and keeps the first one byte for byte", async ({ store, clock }) => {
    const job = await finish(store, dead(), { payload: ODD });
    expect(await store.payloads(job.id)).toEqual([]);
    clock.now += 10;
    const first = clock.now;
    expect(await store.repair([changeOf(job, '{"b":1}', { why: "as asked" })])).toEqual(["repaired"]);
    expect(await read(store, job.id)).toStrictEqual({ ...job, payload: '{"b":1}' });
    clock.now += 10;
    const again = await read(store, job.id);
    expect(await store.repair([changeOf(again, ODD, { actor: "bob", redrive: "r_1" })])).toEqual(["repaired"]);
    expect((await read(store, job.id)).payload).toBe(ODD);
    expect(await store.payloads(job.id)).toStrictEqual([
      { n: 0, payload: ODD, at: job.createdAt, generation: 1, actor: null, redrive: null, why: null },
      { n: 1, payload: '{"b":1}', at: first, generation: 2, actor: "ada@desk", redrive: null, why: "as asked" },
      { n: 2, payload: ODD, at: clock.now, generation: 2, actor: "bob", redrive: "r_1", why: null },
    ]);
  });

  fact("repairs only what the caller saw", async ({ store }) => {
    const job = await finish(store, dead());
    const wrong: Partial<PayloadChange>[] = [
      { generation: job.generation + 1 },
      { generation: job.generation - 1 },
      { was: payloadHash(`${job.payload} `) },
    ];
    for (const each of wrong) expect(await store.repair([changeOf(job, '{"b":1}', each)])).toEqual(["refused"]);
    const absent = { ...changeOf(job, "{}"), id: "no-job" };
    expect(await store.repair([absent, { ...absent, id: "no id at all" }])).toEqual(["missing", "missing"]);
    expect(await store.payloads("no id at all")).toEqual([]);
    expect(await store.repair([])).toEqual([]);
    expect(await read(store, job.id)).toStrictEqual(job);
    expect(await store.payloads(job.id)).toEqual([]);
  });

  fact("repairs only dead jobs", async ({ store }) => {
    for (const state of ["queued", "running", "completed", "cancelled"] as const) {
      const { id } = await inState(store, state);
      const job = await read(store, id);
      expect(await store.repair([changeOf(job, '{"b":1}')])).toEqual(["refused"]);
      expect(await read(store, id)).toStrictEqual(job);
      expect(await store.payloads(id)).toEqual([]);
    }
  });

  fact("writes no version where the payload stays as it is", async ({ store }) => {
    const job = await finish(store, dead());
    expect(await store.repair([changeOf(job, job.payload)])).toEqual(["repaired"]);
    expect(await store.payloads(job.id)).toEqual([]);
  });

  fact("answers each change of a call, and refuses the second of one job", async ({ store }) => {
    const [a, b] = [await finish(store, dead()), await finish(store, dead())];
    const changes = [changeOf(a, "1"), changeOf(b, "2"), changeOf(a, "3"), { ...changeOf(b, "4"), id: "no-job" }];
    expect(await store.repair(changes)).toEqual(["repaired", "repaired", "refused", "missing"]);
    expect(await payloadsOf(store, a.id)).toEqual([a.payload, "1"]);
    expect(await payloadsOf(store, b.id)).toEqual([b.payload, "2"]);
  });

  fact("lets one of two operators repair a job", async ({ store, peer }) => {
    const other = await peer();
    for (let round = 0; round < 5; round++) {
      const job = await finish(store, dead());
      const answers = await Promise.all([
        store.repair([changeOf(job, '"one"')]),
        other.repair([changeOf(job, '"two"')]),
      ]);
      expect(answers.flat().toSorted()).toEqual(["refused", "repaired"]);
      const now = answers[0][0] === "repaired" ? '"one"' : '"two"';
      expect((await read(store, job.id)).payload).toBe(now);
      expect(await payloadsOf(store, job.id)).toEqual([job.payload, now]);
    }
  });

  fact("never repairs a job that another operator has sent back to work", async ({ store, peer }) => {
    const other = await peer();
    for (let round = 0; round < 5; round++) {
      const job = await finish(store, dead());
      const { id, generation } = job;
      const [sent, repaired] = await Promise.all([
        other.redrive([{ id, generation, delayMs: 0 }]),
        store.repair([changeOf(job, '"new"')]),
      ]);
      expect(sent).toEqual(["redriven"]);
      const run = await takeOne(store, id);
      expect(run.payload).toBe(repaired[0] === "repaired" ? '"new"' : job.payload);
      expect(await payloadsOf(store, id)).toEqual(repaired[0] === "repaired" ? [job.payload, '"new"'] : []);
      await end(store, run, complete());
    }
  });

  fact("hands the new payload to the next run", async ({ store }) => {
    const job = await finish(store, dead());
    await store.repair([changeOf(job, ODD)]);
    await store.redrive([{ id: job.id, generation: job.generation, delayMs: 0 }]);
    expect((await takeOne(store, job.id)).payload).toBe(ODD);
  });

  fact("writes a version with a redrive that brings a payload, and none where it is refused", async ({ store }) => {
    const job = await finish(store, dead(), { payload: ODD });
    const request = { id: job.id, generation: job.generation, delayMs: 0, redrive: "r_1" };
    const refused = { ...request, generation: job.generation + 1, payload: '"late"' };
    expect(await store.redrive([refused])).toEqual(["refused"]);
    expect(await store.payloads(job.id)).toEqual([]);
    const fence = { kind: "redrive", name: "r_1", holder: "", version: 7, value: "{}" };
    expect(await store.redrive([{ ...request, payload: '"new"' }], fence)).toEqual(["fenced"]);
    expect(await store.payloads(job.id)).toEqual([]);
    expect((await read(store, job.id)).payload).toBe(ODD);
    expect(await store.redrive([{ ...request, payload: '"new"' }])).toEqual(["redriven"]);
    expect(await store.payloads(job.id)).toMatchObject([
      { n: 0, payload: ODD, generation: 1, actor: null, redrive: null },
      { n: 1, payload: '"new"', generation: 2, actor: null, redrive: "r_1", why: null },
    ]);
    const run = await takeOne(store, job.id);
    expect(run.payload).toBe('"new"');
    const again = await end(store, run, dead());
    const same = { ...request, generation: again.generation, payload: '"new"' };
    expect(await store.redrive([same])).toEqual(["redriven"]);
    expect(await payloadsOf(store, job.id)).toEqual([ODD, '"new"']);
  });

  fact("leaves the key with the first body, so that the producer's repeat stays a duplicate", async ({ store }) => {
    const keyed = { type: "keyed", key: "k", payload: '{"body":1}', digest: digestOf('{"body":1}') };
    const job = await finish(store, dead(), keyed);
    await store.repair([changeOf(job, '{"body":2}')]);
    await store.redrive([{ id: job.id, generation: job.generation, delayMs: 0, payload: '{"body":3}' }]);
    expect(await store.enqueue([newJob(keyed)])).toEqual([{ kind: "duplicate", id: job.id, state: "queued" }]);
    for (const body of ['{"body":2}', '{"body":3}']) {
      const other = newJob({ ...keyed, payload: body, digest: digestOf(body) });
      expect(await store.enqueue([other])).toEqual([{ kind: "conflict", id: job.id }]);
    }
  });

  timed("adds the payload by which the producer replaces a repaired one, also the same", async ({ store, clock }) => {
    const keyed = { type: "keyed", key: "k", payload: "1", digest: digestOf("1"), unique: "replace" } as const;
    const job = await finish(store, dead(), keyed);
    await store.redrive([{ id: job.id, generation: job.generation, delayMs: 0 }]);
    const replace = (payload: string) => store.enqueue([newJob({ ...keyed, payload, digest: digestOf(payload) })]);
    expect(await replace("2")).toEqual([{ kind: "replaced", id: job.id }]);
    expect(await store.payloads(job.id)).toEqual([]);
    const again = await end(store, await takeOne(store, job.id), dead());
    await store.repair([changeOf(again, "3")]);
    await store.redrive([{ id: job.id, generation: again.generation, delayMs: 0 }]);
    clock.now += 10;
    for (const payload of ["3", "4"]) expect(await replace(payload)).toEqual([{ kind: "replaced", id: job.id }]);
    const own = { at: clock.now, generation: 3, actor: null, redrive: null, why: null };
    expect((await store.payloads(job.id)).slice(1)).toMatchObject([
      { n: 1, payload: "3", generation: 3, actor: "ada@desk" },
      { n: 2, payload: "3", ...own },
      { n: 3, payload: "4", ...own },
    ]);
  });

  fact("recalls a job and gives it another payload together, or neither", async ({ store }) => {
    const job = await finish(store, dead(), { payload: ODD });
    await store.redrive([{ id: job.id, generation: job.generation, delayMs: 0, payload: '"new"' }]);
    const target = { id: job.id, generation: job.generation };
    const repair = { was: payloadHash('"new"'), payload: ODD, actor: "bob", why: "undo" };
    const other = { ...repair, was: payloadHash(ODD) };
    const queued = await read(store, job.id);
    expect(await store.recall([{ ...target, repair: other }])).toEqual(["refused"]);
    const wrong = store.recall([{ ...target, repair: { ...repair, payload: "\ud800" } }]);
    await expect(wrong).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await read(store, job.id)).toStrictEqual(queued);
    const absent = { ...target, id: "0199c8a2-7d1e-7a4b-9c3d-2f1e5a6b7c8d", repair };
    expect(await store.recall([{ ...target, repair }, absent])).toEqual(["recalled", "missing"]);
    expect(await read(store, job.id)).toMatchObject({ state: "dead", generation: 2, payload: ODD });
    expect((await store.payloads(job.id)).slice(1)).toMatchObject([
      { n: 1, payload: '"new"', generation: 2 },
      { n: 2, payload: ODD, generation: 3, actor: "bob", redrive: null, why: "undo" },
    ]);
    expect(await store.recall([{ ...target, repair }])).toEqual(["refused"]);
    expect(await take(store)).toEqual([]);
  });

  fact("never gives a payload back to a job that a worker has taken", async ({ store, peer }) => {
    const other = await peer();
    for (let round = 0; round < 5; round++) {
      const job = await finish(store, dead());
      await store.redrive([{ id: job.id, generation: job.generation, delayMs: 0, payload: '"new"' }]);
      const repair = { was: payloadHash('"new"'), payload: job.payload, actor: "bob", why: null };
      const [runs, [answer]] = await Promise.all([
        take(other),
        store.recall([{ id: job.id, generation: job.generation, repair }]),
      ]);
      expect(runs.map(({ payload }) => payload)).toEqual(answer === "recalled" ? [] : ['"new"']);
      expect((await read(store, job.id)).payload).toBe(answer === "recalled" ? job.payload : '"new"');
      for (const run of runs) await end(other, run, complete());
    }
  });

  fact("forgets the payloads of a job with the job", async ({ store }) => {
    const [removed, pruned] = [await finish(store, dead()), await finish(store, dead())];
    await store.repair([changeOf(removed, "1"), changeOf(pruned, "2")]);
    await store.remove([removed.id]);
    expect(await store.payloads(removed.id)).toEqual([]);
    for (let more = true; more; ) ({ more } = await store.prune(FORGET));
    expect(await store.get([pruned.id])).toEqual([null]);
    expect(await store.payloads(pruned.id)).toEqual([]);
    expect(await take(store)).toEqual([]);
  });

  fact("refuses a repair that cannot be stored, and writes none of its call", async ({ store }) => {
    const job = await finish(store, dead());
    const wrong: [Partial<PayloadChange>, string][] = [
      [{ payload: "\ud800" }, "invalid_argument"],
      [{ payload: 7 as unknown as string }, "invalid_argument"],
      [{ payload: `"${"x".repeat(16_777_216)}"` }, "payload_too_large"],
      [{ was: "seen" }, "invalid_argument"],
      [{ actor: "" }, "invalid_argument"],
      [{ why: "" }, "invalid_argument"],
      [{ generation: 1.5 }, "invalid_argument"],
      [{ redrive: "no name" }, "invalid_argument"],
    ];
    for (const [each, code] of wrong) {
      const refused = store.repair([changeOf(job, "1"), changeOf(job, "2", each)]);
      await expect(refused).rejects.toMatchObject({ code });
    }
    expect(await read(store, job.id)).toStrictEqual(job);
  });
}
