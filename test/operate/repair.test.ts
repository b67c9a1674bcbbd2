// Repairs as an operator makes them: one payload by hand, many by a recipe, undone while no worker has the job. What does
// not fit, cannot be checked or comes too late writes nothing.
import { describe, expect, it } from "vitest";
import { defineJob, PermanentError, type Recipe, type Redrive } from "../../src/index.ts";
import { beside, codeOf, drain, type Kind, KINDS, openRedrive } from "../redrive/kinds.ts";

let cured = false;
const seen: unknown[] = [];

/** A schema as zod would make it: an amount in cents, and a currency once the bug is known. */
const amounts = {
  "~standard": {
    version: 1 as const,
    vendor: "test",
    validate(value: unknown) {
      const { cents } = value as { cents?: unknown };
      if (typeof cents === "number") return { value: value as { cents: number } };
      return { issues: [{ message: `expected a number, got ${typeof cents}`, path: ["cents"] }] };
    },
  },
};
const pay = defineJob("pay", {
  input: amounts,
  run(input) {
    if (!cured) throw new PermanentError("no currency");
    seen.push(input);
  },
});
const mail = defineJob("mail", {
  run(): never {
    throw new PermanentError("no such mailbox");
  },
});

async function withDead(kind: Kind, payloads: readonly string[]): Promise<{ redrive: Redrive; ids: string[] }> {
  cured = false;
  seen.length = 0;
  const redrive = await openRedrive(kind, { jobs: [pay, mail], actor: "ada" });
  const ids: string[] = [];
  for (const payload of payloads) ids.push((await redrive.enqueueText(pay, payload)).id);
  await drain(redrive);
  return { redrive, ids };
}

const ODD = ' {"cents" : 1, "id":9007199254740993, "s":"\\ud800", "a":1,"a":2}';

async function payloadOf(redrive: Redrive, id: string): Promise<string | undefined> {
  return (await redrive.store.get([id]))[0]?.payload;
}

/** The kinds of events about the repair, oldest first, with their steps. */
async function eventsOf(redrive: Redrive, kind: string): Promise<unknown[]> {
  const { items } = await redrive.events({ kind, oldest: true });
  return items.map(({ actor, why, subject, value }) => [actor, why, subject, JSON.parse(value).step]);
}

describe.each(KINDS)("on %s", (kind) => {
  it("an edit gives a dead job another payload, which its next run gets", async () => {
    const { redrive, ids } = await withDead(kind, [ODD]);
    const [id = ""] = ids;
    const answer = await redrive.deadLetters.edit(id, '{"cents":2}', { why: "as the customer said" });
    expect(answer).toEqual({ id, version: 1, changed: true, recalled: false });
    expect(await redrive.deadLetters.payloads(id)).toMatchObject([
      { n: 0, payload: ODD, actor: null },
      { n: 1, payload: '{"cents":2}', actor: "ada", why: "as the customer said" },
    ]);
    expect(await redrive.deadLetters.edit(id, '{"cents":2}')).toEqual({ ...answer, changed: false });
    expect(await eventsOf(redrive, "job.edited")).toEqual([
      ["ada", "as the customer said", `job:${id}`, "intent"],
      ["ada", "as the customer said", `job:${id}`, "done"],
    ]);
    cured = true;
    await redrive.deadLetters.retry(id);
    await drain(redrive);
    expect(seen).toEqual([{ cents: 2 }]);
  });

  it("an edit is refused that is no JSON, does not fit, is too large, too late or about nothing", async () => {
    const { redrive, ids } = await withDead(kind, [ODD, '{"cents":1}']);
    const [id = "", other = ""] = ids;
    const { deadLetters } = redrive;
    const refused: [() => Promise<unknown>, string, RegExp][] = [
      [() => deadLetters.edit(id, "{cents:1}"), "invalid_payload", /^payload: expected JSON/],
      [
        () => deadLetters.edit(id, '{"cents":"1"}'),
        "invalid_payload",
        /schema says cents: expected a number, got string/,
      ],
      [
        () => deadLetters.edit(id, `{"cents":1,"x":"${"x".repeat(1_048_576)}"}`),
        "payload_too_large",
        /at most 1048576/,
      ],
      [() => deadLetters.edit("no-job", "{}"), "not_found", /There is no job "no-job"/],
      [() => deadLetters.edit(id, '{"cents":1}', { why: "" }), "invalid_argument", /^why/],
      [() => deadLetters.edit(id, '{"cents":1}', { wy: "" } as object), "invalid_argument", /did you mean/],
      [() => deadLetters.undo(id), "illegal_transition", /has its first payload; there is nothing to undo/],
      [() => deadLetters.undo("no-job"), "not_found", /no-job/],
    ];
    for (const [call, code, said] of refused)
      await expect(call()).rejects.toMatchObject({ code, message: expect.stringMatching(said) });
    for (const [call] of refused) await expect(call()).rejects.not.toThrow(/\n/);
    expect(await payloadOf(redrive, id)).toBe(ODD);
    expect(await deadLetters.payloads(id)).toEqual([]);
    // Another operator is faster.
    const { job } = await deadLetters.get(other);
    const second = await beside(redrive, kind, { jobs: [pay], actor: "bob" });
    await second.deadLetters.edit(other, '{"cents":3}');
    const late = deadLetters.edit(other, '{"cents":4}', { seen: job });
    await expect(late).rejects.toMatchObject({
      code: "illegal_transition",
      message: expect.stringMatching(/was changed since you looked at it/),
    });
    await second.deadLetters.retry(other);
    const sent = deadLetters.edit(other, '{"cents":5}');
    await expect(sent).rejects.toMatchObject({
      code: "illegal_transition",
      message: expect.stringMatching(
        /is queued, and only a dead job can be edited \(bob sent it back to work at .*Z\); nothing was written/,
      ),
    });
    expect(await payloadOf(redrive, other)).toBe('{"cents":3}');
  });

  it("an edit is refused where no process knows the type", async () => {
    const { redrive, ids } = await withDead(kind, ['{"cents":1}']);
    const stranger = await beside(redrive, kind, { jobs: [mail] });
    const said = { code: "invalid_argument", message: expect.stringMatching(/No process here knows the type pay/) };
    await expect(stranger.deadLetters.edit(ids[0] ?? "", "{}")).rejects.toMatchObject(said);
    await expect(stranger.deadLetters.preview({ type: "pay" }, "{}")).rejects.toMatchObject(said);
    await expect(stranger.deadLetters.repair({ type: "pay" }, "{}")).rejects.toMatchObject(said);
    expect(await redrive.deadLetters.payloads(ids[0] ?? "")).toEqual([]);
  });

  it("undo restores the first payload byte for byte, and recalls a job that was sent and not taken", async () => {
    const { redrive, ids } = await withDead(kind, [ODD]);
    const [id = ""] = ids;
    const { deadLetters } = redrive;
    await deadLetters.edit(id, '{"cents":2}');
    expect(await deadLetters.undo(id, { why: "wrong" })).toEqual({ id, version: 2, changed: true, recalled: false });
    expect(await payloadOf(redrive, id)).toBe(ODD);
    await deadLetters.edit(id, '{"cents":3}');
    await deadLetters.retry(id);
    expect(await deadLetters.undo(id)).toEqual({ id, version: 4, changed: true, recalled: true });
    expect((await redrive.store.get([id]))[0]).toMatchObject({ state: "dead", payload: ODD, generation: 2 });
    expect((await deadLetters.payloads(id)).map(({ payload }) => payload)).toEqual([
      ODD,
      '{"cents":2}',
      ODD,
      '{"cents":3}',
      ODD,
    ]);
    expect(await eventsOf(redrive, "job.undone")).toHaveLength(4);
    cured = true;
    await drain(redrive);
    expect(seen).toEqual([]);
  });

  it("undo is refused once a worker has taken the job, or its producer has replaced the payload", async () => {
    const { redrive, ids } = await withDead(kind, [ODD]);
    const [id = ""] = ids;
    const { deadLetters } = redrive;
    await deadLetters.edit(id, '{"cents":2}');
    cured = true;
    await deadLetters.retry(id);
    await drain(redrive);
    await expect(deadLetters.undo(id)).rejects.toMatchObject({
      code: "illegal_transition",
      message: expect.stringMatching(/is completed/),
    });
    cured = false;
    const keyed = await redrive.enqueue(pay, { cents: 1 }, { key: "k", unique: "replace" });
    await drain(redrive);
    await deadLetters.edit(keyed.id, '{"cents":2}');
    await deadLetters.retry(keyed.id, { delay: "1h" });
    await redrive.enqueue(pay, { cents: 9 }, { key: "k", unique: "replace" });
    await expect(deadLetters.undo(keyed.id)).rejects.toMatchObject({
      message: expect.stringMatching(/its producer has sent since the repair/),
    });
    expect(await payloadOf(redrive, keyed.id)).toBe('{"cents":9}');
  });

  it("a recipe that makes 3 of 100 invalid is refused with those three named", async () => {
    const payloads = Array.from({ length: 100 }, (_, n) => `{"cents":${n},"bad":${n % 40 === 7}}`);
    const { redrive, ids } = await withDead(kind, payloads);
    const recipe = (payload: { cents: number; bad: boolean }): object =>
      payload.bad ? { cents: "7" } : { ...payload, currency: "EUR" };
    const bad = ids.filter((_, n) => n % 40 === 7);
    expect(bad).toHaveLength(3);
    const preview = await redrive.deadLetters.preview({ type: "pay" }, recipe);
    expect(preview).toMatchObject({ letters: 100, fits: 97, unchanged: 0, notDead: 0, missing: 0 });
    const issue = "cents: expected a number, got string";
    expect(preview.misfits).toEqual({ count: 3, named: bad.map((id) => ({ id, issue })) });
    expect(preview.losesNumbers).toEqual({ count: 0, named: [] });
    const refused = await redrive.deadLetters.repair({ type: "pay" }, recipe).catch((error: Error) => error);
    expect(refused).toMatchObject({
      code: "invalid_payload",
      message: expect.stringMatching(/3 of 100 do not/),
      details: { preview },
    });
    for (const id of bad) expect((refused as Error).message).toContain(`${id} (${issue})`);
    for (const id of ids) expect(await redrive.deadLetters.payloads(id)).toEqual([]);
    expect(await redrive.deadLetters.repair({ type: "pay" }, recipe, { skipMisfits: true, why: "now" })).toEqual({
      repaired: 97,
      unchanged: 0,
      skipped: 3,
      refused: 0,
      missing: 0,
    });
    expect(await payloadOf(redrive, ids[0] ?? "")).toBe('{"cents":0,"bad":false,"currency":"EUR"}');
    expect(await payloadOf(redrive, bad[0] ?? "")).toBe(payloads[7]);
    expect((await eventsOf(redrive, "job.edited")).at(-1)).toEqual(["ada", "now", null, "done"]);
  });

  it("a patch keeps numbers that a function would lose, and both leave what is unchanged alone", async () => {
    const { redrive, ids } = await withDead(kind, [ODD, '{"cents":1,"cur":"EUR"}', '{"cents":1}']);
    const { deadLetters } = redrive;
    const patch = '{"cur":"EUR"}';
    expect(await deadLetters.preview(ids, patch)).toMatchObject({ letters: 3, fits: 2, unchanged: 1 });
    const spread = (payload: object): object => ({ ...payload, cur: "EUR" });
    const preview = await deadLetters.preview(ids, spread);
    expect(preview).toMatchObject({ letters: 3, fits: 1, unchanged: 1, misfits: { count: 0 } });
    const issue = "a function would change the number 9007199254740993";
    expect(preview.losesNumbers).toEqual({ count: 1, named: [{ id: ids[0], issue }] });
    expect(await codeOf(() => deadLetters.repair(ids, spread))).toBe("invalid_payload");
    expect(await deadLetters.repair([...ids, "no-job"], patch)).toEqual({
      repaired: 2,
      unchanged: 1,
      skipped: 0,
      refused: 0,
      missing: 1,
    });
    expect(await payloadOf(redrive, ids[0] ?? "")).toBe(ODD.replace(/}$/, ',"cur":"EUR"}'));
    await deadLetters.undo(ids[0] ?? "");
    expect(await payloadOf(redrive, ids[0] ?? "")).toBe(ODD);
  });

  it("a function that throws, returns nothing or waits for ever writes nothing", async () => {
    const { redrive, ids } = await withDead(kind, ['{"cents":1}']);
    const recipes: [Recipe, RegExp][] = [
      [
        () => {
          throw new TypeError("no\nway");
        },
        /got an error: .*no.*way/,
      ], // prettier-ignore
      [() => Promise.reject(new Error("later")), /got an error: .*later/],
      [() => undefined, /got undefined; return the payload/],
      [(payload: object) => ({ ...payload, at: new Date(0) }), /a Date/],
      ["{", /^patch: expected JSON/],
      [7 as unknown as Recipe, /^recipe: expected a merge patch/],
      [{ module: "" }, /^recipe: expected a merge patch/],
    ];
    for (const [recipe, said] of recipes) {
      const refused = await redrive.deadLetters.repair(ids, recipe).catch((error: Error) => error);
      expect(refused).toMatchObject({ message: expect.stringMatching(said) });
      expect((refused as Error).message).not.toContain("\n");
      expect(["invalid_argument", "invalid_payload"]).toContain((refused as { code?: string }).code);
    }
    expect(await redrive.deadLetters.payloads(ids[0] ?? "")).toEqual([]);
    expect(await redrive.deadLetters.preview({ type: "none" }, "{}")).toMatchObject({ letters: 0, fits: 0 });
    expect(await codeOf(() => redrive.deadLetters.preview({}, "{}"))).toBe("invalid_argument");
  });

  it("leaves letters alone that die while a repair is under way", async () => {
    const { redrive, ids } = await withDead(kind, ['{"cents":1}', '{"cents":2}']);
    let late = "";
    const recipe = async (payload: object): Promise<object> => {
      if (late === "") {
        late = (await redrive.enqueue(pay, { cents: 3 })).id;
        await drain(redrive);
      }
      return { ...payload, cur: "EUR" };
    };
    expect(await redrive.deadLetters.repair({ type: "pay" }, recipe)).toMatchObject({ repaired: 2 });
    for (const id of ids) expect(await payloadOf(redrive, id)).toContain("EUR");
    expect(await payloadOf(redrive, late)).toBe('{"cents":3}');
  });
});
