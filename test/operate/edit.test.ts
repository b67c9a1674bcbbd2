// One payload changed by hand, and given back while no run has got it. What does not fit, or comes too late, writes nothing.
import { describe, expect, it } from "vitest";
import { createRedrive } from "../../src/index.ts";
import { drain } from "../redrive/kinds.ts";
import { beside, cure, eventsOf, mail, ODD, pay, payloadOf, seen, withDead, STORES } from "./dead-payments.ts";

describe.each(STORES)("on %s", (kind) => {
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
    cure();
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
      [
        () => deadLetters.undo(id),
        "illegal_transition",
        /has the payload that its producer sent; there is nothing to undo/,
      ],
      [() => deadLetters.undo("no-job"), "not_found", /no-job/],
    ];
    for (const [call, code, said] of refused)
      await expect(call()).rejects.toMatchObject({ code, message: expect.stringMatching(said) });
    for (const [call] of refused) await expect(call()).rejects.not.toThrow(/\n/);
    // A dry run says what the type says of every field, and writes nothing.
    await expect(deadLetters.edit(id, '{"cents":"1"}', { dryRun: true })).rejects.toMatchObject({
      details: { issues: [{ path: "cents", message: expect.stringContaining("expected a number") }] },
    });
    expect(await deadLetters.edit(id, '{"cents":1}', { dryRun: true })).toMatchObject({ changed: true, version: 0 });
    expect(await payloadOf(redrive, id)).toBe(ODD);
    expect(await deadLetters.payloads(id)).toEqual([]);
    // Another operator is faster.
    const { job } = await deadLetters.get(other);
    const second = await beside(redrive, kind, { jobs: [pay], actor: "bob" });
    await second.deadLetters.edit(other, '{"cents":3}');
    const late = deadLetters.edit(other, '{"cents":4}', { seen: job });
    await expect(late).rejects.toMatchObject({
      code: "illegal_transition",
      message: expect.stringMatching(
        /was changed since you looked at it: it is dead now \(bob gave it another payload at .*Z\); look again/,
      ),
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
    cure();
    await drain(redrive);
    expect(seen).toEqual([]);
  });

  it("undo is refused for a job that was taken with its new payload and died again", async () => {
    const { redrive, ids } = await withDead(kind, [ODD]);
    const [id = ""] = ids;
    const { deadLetters } = redrive;
    await deadLetters.edit(id, '{"cents":2}');
    await deadLetters.retry(id);
    await drain(redrive);
    expect((await redrive.store.get([id]))[0]).toMatchObject({ state: "dead", generation: 2 });
    const taken = {
      code: "illegal_transition",
      message: expect.stringMatching(/was taken by a worker with its new payload since the repair; use edit/),
    };
    await expect(deadLetters.undo(id)).rejects.toMatchObject(taken);
    // Neither sending it again nor recalling it makes that run undone.
    await deadLetters.retry(id);
    await expect(deadLetters.undo(id)).rejects.toMatchObject(taken);
    await redrive.store.recall([{ id, generation: 2 }]);
    await expect(deadLetters.undo(id)).rejects.toMatchObject(taken);
    expect(await payloadOf(redrive, id)).toBe('{"cents":2}');
    // A later edit can be undone again.
    await deadLetters.edit(id, '{"cents":4}');
    expect(await deadLetters.undo(id)).toMatchObject({ changed: true });
    expect(await payloadOf(redrive, id)).toBe(ODD);
  });

  it("undo gives back what the producer sent last, and refuses to lose it, also where it is the same", async () => {
    const { redrive } = await withDead(kind, []);
    const { deadLetters } = redrive;
    const send = (cents: number) => redrive.enqueue(pay, { cents }, { key: "k", unique: "replace" });
    const { id } = await send(1);
    await drain(redrive);
    await deadLetters.edit(id, '{"cents":2}');
    await deadLetters.retry(id, { delay: "1h" });
    expect(await send(2)).toMatchObject({ id, replaced: true });
    await expect(deadLetters.undo(id)).rejects.toMatchObject({
      code: "illegal_transition",
      message: expect.stringMatching(/has a payload that its producer has sent since the repair/),
    });
    expect((await redrive.store.get([id]))[0]).toMatchObject({ state: "queued", payload: '{"cents":2}' });
    await redrive.store.recall([{ id, generation: 1 }]);
    await deadLetters.edit(id, '{"cents":3}');
    await deadLetters.undo(id);
    expect(await payloadOf(redrive, id)).toBe('{"cents":2}');
  });

  it("undo of a job that was sent is one write, so that no crash leaves it recalled and not undone", async () => {
    const { redrive, ids } = await withDead(kind, [ODD]);
    const [id = ""] = ids;
    await redrive.deadLetters.edit(id, '{"cents":2}');
    await redrive.deadLetters.retry(id, { delay: "1h" });
    // The process ends after its first write, as far as the store can tell.
    let isBroken = false;
    const broken = new Proxy(redrive.store, {
      get(store, name) {
        const verb: unknown = Reflect.get(store, name);
        if ((name !== "recall" && name !== "repair") || typeof verb !== "function") return verb;
        return async (...args: unknown[]) => {
          if (isBroken) throw new Error("the process has ended");
          isBroken = true;
          return Reflect.apply(verb, store, args) as unknown;
        };
      },
    });
    const dying = await createRedrive({ store: broken, jobs: [pay], log: "silent" });
    await dying.deadLetters.undo(id).catch(() => undefined);
    expect((await redrive.store.get([id]))[0]).toMatchObject({ state: "dead", generation: 2, payload: ODD });
  });

  it("undo is refused once a worker has taken the job, or its producer has replaced the payload", async () => {
    const { redrive, ids } = await withDead(kind, [ODD]);
    const [id = ""] = ids;
    const { deadLetters } = redrive;
    await deadLetters.edit(id, '{"cents":2}');
    cure();
    await deadLetters.retry(id);
    await drain(redrive);
    await expect(deadLetters.undo(id)).rejects.toMatchObject({
      code: "illegal_transition",
      message: expect.stringMatching(/is completed/),
    });
    cure(false);
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

  it("an edit that changes nothing writes nothing, whatever the schema says by now", async () => {
    const { redrive } = await withDead(kind, []);
    // Its producer does not know the schema.
    const { id } = await (await beside(redrive, kind, { jobs: [] })).enqueueText("pay", '{"cents":"1"}');
    await drain(redrive);
    const unchanged = { id, version: 0, changed: false, recalled: false };
    expect(await redrive.deadLetters.edit(id, '{"cents":"1"}')).toEqual(unchanged);
    expect(await eventsOf(redrive, "job.edited")).toEqual([]);
  });
});
