// Payloads of many dead letters changed by a recipe. What does not fit, cannot be checked or comes too late writes nothing.
import { describe, expect, it } from "vitest";
import { type Recipe } from "../../src/index.ts";
import { codeOf, drain } from "../redrive/kinds.ts";
import { beside, eventsOf, ODD, pay, payloadOf, STORES, withDead } from "./dead-payments.ts";

describe.each(STORES)("on %s", (kind) => {
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
      conflicts: [],
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
      conflicts: [],
      missing: 1,
    });
    expect(await payloadOf(redrive, ids[0] ?? "")).toBe(ODD.replace(/}$/, ',"cur":"EUR"}'));
    await deadLetters.undo(ids[0] ?? "");
    expect(await payloadOf(redrive, ids[0] ?? "")).toBe(ODD);
  });

  it("a function that returns the payload as it was leaves its bytes alone", async () => {
    const payloads = ['{ "cents":1.0 }', '{"cents":-0}', '{"cents":1,"cents":2}', '{"cents":1,"s":"\\ud800"}'];
    const { redrive, ids } = await withDead(kind, payloads);
    expect(await redrive.deadLetters.repair(ids, (payload: object) => payload)).toMatchObject({
      repaired: 0,
      unchanged: 4,
    });
    expect(await Promise.all(ids.map((id) => payloadOf(redrive, id)))).toEqual(payloads);
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
      ["[1]", /^patch: expected a JSON object; got a list/],
      ["null", /^patch: expected a JSON object; got null/],
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

  it("arguments of a wrong type are refused, and write nothing", async () => {
    const { redrive, ids } = await withDead(kind, ['{"cents":1}']);
    const [id = ""] = ids;
    const { deadLetters } = redrive;
    // oxlint-disable-next-line typescript/no-explicit-any -- callers in JavaScript
    const any = deadLetters as any;
    const fine = '{"cents":2}';
    const seen: unknown[] = [null, 7, "a", [], {}, { payload: 1, generation: 1 }, { payload: "1", generation: "1" }];
    const refused: [() => Promise<unknown>, RegExp][] = [
      ...seen.map((each): [() => Promise<unknown>, RegExp] => [
        () => any.edit(id, fine, { seen: each }),
        /^seen: expected/,
      ]),
      [() => any.edit(null, fine), /^id: expected/],
      [() => any.edit(id, { cents: 2 }), /^payload: expected/],
      [() => any.edit(id), /^payload: expected/],
      [() => any.edit(id, fine, null), /^edit: expected/],
      [() => any.edit(id, fine, { why: 7 }), /^why: expected/],
      [() => any.undo(7), /^id: expected/],
      [() => any.undo(id, null), /^undo: expected/],
      [() => any.undo(id, { why: 7 }), /^why: expected/],
      [() => any.payloads(null), /^id: expected/],
      [() => any.preview(null, fine), /^filter: expected/],
      [() => any.preview([7], fine), /^id: expected/],
      [() => any.preview(id), /^recipe: expected/],
      [() => any.preview(id, null), /^recipe: expected/],
      [() => any.repair(undefined, fine), /^filter: expected/],
      [() => any.repair(id, { module: 7 }), /^recipe: expected/],
      [() => any.repair(id, fine, null), /^repair: expected/],
      [() => any.repair(id, fine, { skipMisfits: "yes" }), /^skipMisfits: expected/],
      [() => any.repair(id, fine, { confirm: true }), /^confirm: expected/],
      [() => any.repair(id, fine, { why: null }), /^why: expected/],
    ];
    for (const [call, said] of refused) {
      const error = await call().catch((thrown: Error) => thrown);
      expect(error).toMatchObject({ name: "RedriveError", message: expect.stringMatching(said) });
    }
    expect(await deadLetters.payloads(id)).toEqual([]);
    expect(await eventsOf(redrive, "job.edited")).toEqual([]);
  });

  it("a function is called once for each letter, and nothing is written where it fails for one", async () => {
    const payloads = Array.from({ length: 120 }, (_, n) => `{"cents":${n}}`);
    const { redrive, ids } = await withDead(kind, payloads);
    const calls: number[] = [];
    const failing = ({ cents }: { cents: number }): object => {
      calls.push(cents);
      if (cents === 119) throw new Error("the last one");
      return { cents: cents + 1 };
    };
    const refused = redrive.deadLetters.repair({ type: "pay" }, failing);
    await expect(refused).rejects.toThrow(/got an error: Error: the last one; .*; nothing was written$/);
    expect(calls).toEqual([...payloads.keys()]);
    for (const id of ids) expect(await redrive.deadLetters.payloads(id)).toEqual([]);
    calls.length = 0;
    // A function that would answer otherwise when it is called again.
    const once = ({ cents }: { cents: number }): object =>
      calls.push(cents) > 120 ? { cents: "twice" } : { cents: cents + 1 };
    expect(await redrive.deadLetters.repair({ type: "pay" }, once)).toMatchObject({ repaired: 120, skipped: 0 });
    expect(calls).toHaveLength(120);
    expect(await payloadOf(redrive, ids[119] ?? "")).toBe('{"cents":120}');
  });

  it("a repair writes only after its question was answered with true", async () => {
    const { redrive, ids } = await withDead(kind, ['{"cents":1}', '{"cents":2}']);
    const asked: unknown[] = [];
    const confirm = (answer: unknown) => (preview: unknown) => (asked.push(preview), answer as boolean);
    for (const answer of [false, undefined, "yes"])
      expect(await redrive.deadLetters.repair(ids, '{"cents":5}', { confirm: confirm(answer) })).toMatchObject({
        repaired: 0,
      });
    expect(asked).toHaveLength(3);
    expect(asked[0]).toMatchObject({ letters: 2, fits: 2 });
    expect(await redrive.deadLetters.payloads(ids[0] ?? "")).toEqual([]);
    expect(await eventsOf(redrive, "job.edited")).toEqual([]);
    const yes = { confirm: async () => true };
    expect(await redrive.deadLetters.repair(ids, '{"cents":5}', yes)).toMatchObject({ repaired: 2 });
  });

  it("a letter that another operator changes between look and write is left alone and named", async () => {
    const { redrive, ids } = await withDead(kind, ['{"cents":1}', '{"cents":2}', '{"cents":3}']);
    const [edited = "", sent = "", other = ""] = ids;
    const bob = await beside(redrive, kind, { jobs: [pay], actor: "bob" });
    const confirm = async (): Promise<boolean> => {
      await bob.deadLetters.edit(edited, '{"cents":9}');
      await bob.deadLetters.retry([sent]);
      return true;
    };
    const sum = await redrive.deadLetters.repair(ids, '{"cur":"EUR"}', { confirm });
    expect(sum).toMatchObject({ repaired: 1, refused: 2, missing: 0 });
    expect(sum.conflicts).toEqual([
      { id: edited, issue: expect.stringMatching(/^it is dead now \(bob gave it another payload at .*Z\)$/) },
      { id: sent, issue: expect.stringMatching(/^it is queued now \(bob sent it back to work at .*Z\)$/) },
    ]);
    expect(await payloadOf(redrive, edited)).toBe('{"cents":9}');
    expect(await payloadOf(redrive, sent)).toBe('{"cents":2}');
    expect(await payloadOf(redrive, other)).toBe('{"cents":3,"cur":"EUR"}');
  });

  it("a function cannot change the letter that is stored", async () => {
    const { redrive, ids } = await withDead(kind, ['{"cents":1}', '{"cents":2}']);
    const [id = "", other = ""] = ids;
    // oxlint-disable-next-line typescript/no-explicit-any -- callers in JavaScript
    const hostile = (payload: object, letter: any): object => {
      Object.assign(letter.job, { id: other, payload: "x", generation: 9, type: "mail" });
      letter.job = null;
      return { ...payload, cur: "EUR" };
    };
    expect(await redrive.deadLetters.repair(id, hostile)).toMatchObject({ repaired: 1 });
    expect(await payloadOf(redrive, id)).toBe('{"cents":1,"cur":"EUR"}');
    expect(await payloadOf(redrive, other)).toBe('{"cents":2}');
    expect((await redrive.deadLetters.payloads(id))[0]).toMatchObject({ payload: '{"cents":1}' });
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
