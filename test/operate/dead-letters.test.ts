// The dead letters: list, look, count, send back, remove and export, each once however often it is asked for.
import { describe, expect, it } from "vitest";
import { type DeadLetterFilter, type DeadLetterTarget, defineJob, immediate, PermanentError } from "../../src/index.ts";
import type { Redrive } from "../../src/index.ts";
import { codeOf, drain, type Kind, KINDS, openRedrive } from "../redrive/kinds.ts";

let cured = false;
const pay = defineJob("pay", {
  maxAttempts: 2,
  backoff: immediate(),
  run({ n }: { n: number }) {
    if (!cured) throw new Error(`card ${n} declined`);
    return "paid";
  },
});
const mail = defineJob("mail", {
  service: "smtp",
  run: (_input: object): void => {
    throw new PermanentError('=no such mailbox, "really"');
  },
});

/** Three dead payments of tenant acme and one dead mail. */
async function withDead(kind: Kind): Promise<{ redrive: Redrive; pays: string[]; mailed: string }> {
  cured = false;
  const redrive = await openRedrive(kind, { jobs: [pay, mail] });
  const pays: string[] = [];
  for (const n of [1, 2, 3]) pays.push((await redrive.enqueue(pay, { n }, { tenant: "acme", key: `p${n}` })).id);
  await drain(redrive);
  const { id: mailed } = await redrive.enqueue(mail, {});
  await drain(redrive);
  return { redrive, pays, mailed };
}

async function idsOf(redrive: Redrive, filter: DeadLetterFilter): Promise<string[]> {
  return (await redrive.deadLetters.list(filter)).items.map(({ job }) => job.id).toSorted();
}

describe.each(KINDS)("dead letters on %s", (kind) => {
  it("are listed newest first, by page, or oldest first", async () => {
    const { redrive, pays, mailed } = await withDead(kind);
    const first = await redrive.deadLetters.list({ limit: 1 });
    expect(first.items[0]?.job.id).toBe(mailed);
    const rest = await redrive.deadLetters.list({ cursor: first.next });
    expect(rest.items.map(({ job }) => job.id).toSorted()).toEqual(pays.toSorted());
    expect(rest.next).toBeNull();
    expect((await redrive.deadLetters.list({ oldest: true })).items.at(-1)?.job.id).toBe(mailed);
    let count = 0;
    for await (const letter of redrive.deadLetters.all({ type: "pay" })) count += letter.attempts;
    expect(count).toBe(6);
  });

  it("are found by every field", async () => {
    const { redrive, pays, mailed } = await withDead(kind);
    const { failure, diedAt } = await redrive.deadLetters.get(mailed);
    const onlyMail: DeadLetterFilter[] = [
      { jobId: mailed },
      { type: "mail" },
      { service: "smtp" },
      { class: "permanent" },
      { reason: "permanent" },
      { fingerprint: failure.fingerprint },
      { text: "MAILBOX" },
    ];
    for (const filter of onlyMail) expect(await idsOf(redrive, filter)).toEqual([mailed]);
    for (const filter of [{ tenant: "acme" }, { reason: "exhausted" as const }, { text: "declined" }])
      expect(await idsOf(redrive, filter)).toEqual(pays.toSorted());
    expect(await idsOf(redrive, { until: 1 })).toEqual([]);
    expect(await idsOf(redrive, { from: new Date(diedAt), type: "mail" })).toEqual([mailed]);
    expect(await idsOf(redrive, { until: diedAt, type: "mail" })).toEqual([]);
    expect(await idsOf(redrive, { from: "2020-01-01", all: true })).toHaveLength(4);
  });

  it("are shown with their history", async () => {
    const { redrive, pays } = await withDead(kind);
    const letter = await redrive.deadLetters.get(pays[0] ?? "");
    expect(letter).toMatchObject({ reason: "exhausted", attempts: 2, generation: 1, redrivenAt: null });
    expect(letter.job).toMatchObject({ state: "dead", payload: '{"n":1}' });
    expect(letter.history.map(({ attempt, delayMs }) => [attempt, delayMs])).toEqual([
      [1, 0],
      [2, null],
    ]);
    expect(await codeOf(() => redrive.deadLetters.get("nobody"))).toBe("not_found");
  });

  it("are counted by class, type, reason and cause", async () => {
    const { redrive } = await withDead(kind);
    const tally = await redrive.deadLetters.stats();
    expect(tally).toMatchObject({
      total: 4,
      byType: { pay: 3, mail: 1 },
      byClass: { transient: 3, permanent: 1 },
      byReason: { exhausted: 3, permanent: 1 },
      otherCauses: 0,
    });
    // The number of the card does not make another cause.
    expect(tally.causes.map(({ count }) => count)).toEqual([3, 1]);
    expect(await redrive.deadLetters.stats({ type: "mail" })).toMatchObject({ total: 1, byType: { mail: 1 } });
  });

  it("go back to work once, however often it is asked for", async () => {
    const { redrive, pays } = await withDead(kind);
    const [id = ""] = pays;
    expect(await redrive.deadLetters.retry(id)).toEqual({ redriven: 1, refused: 0, missing: 0 });
    expect(await redrive.deadLetters.retry(id)).toEqual({ redriven: 0, refused: 1, missing: 0 });
    expect(await redrive.jobs.get(id)).toMatchObject({ state: "queued", attempts: 0, generation: 2 });
    expect(await idsOf(redrive, { type: "pay" })).toEqual(pays.slice(1).toSorted());
    expect(await idsOf(redrive, { type: "pay", redriven: true })).toEqual(pays.toSorted());
    cured = true;
    expect(await drain(redrive)).toMatchObject({ completed: 1 });
    expect(await redrive.deadLetters.retry(id)).toEqual({ redriven: 0, refused: 1, missing: 0 });
    expect((await redrive.deadLetters.get(id)).redrivenAt).not.toBeNull();
  });

  it("go back by filter, and two who ask at once do it once", async () => {
    const { redrive, mailed } = await withDead(kind);
    const both = await Promise.all([1, 2].map(() => redrive.deadLetters.retry({ tenant: "acme" }, { delay: "1h" })));
    expect(both.reduce((sum, { redriven }) => sum + redriven, 0)).toBe(3);
    expect(await redrive.deadLetters.retry({ type: "pay" })).toEqual({ redriven: 0, refused: 0, missing: 0 });
    expect((await redrive.jobs.list({ due: false })).items).toHaveLength(3);
    expect(await idsOf(redrive, {})).toEqual([mailed]);
    expect(await redrive.deadLetters.retry([mailed, "nobody"])).toEqual({ redriven: 1, refused: 0, missing: 1 });
  });

  it("that die again are a letter of their own, with the old one as history", async () => {
    const { redrive, pays } = await withDead(kind);
    const [id = ""] = pays;
    await redrive.deadLetters.retry(id);
    await drain(redrive);
    expect(await redrive.deadLetters.get(id)).toMatchObject({ generation: 2, attempts: 2, redrivenAt: null });
    const letters = await redrive.deadLetters.list({ jobId: id, redriven: true });
    expect(letters.items.map(({ generation }) => generation)).toEqual([2, 1]);
  });

  it("are removed once, and nothing that lives is", async () => {
    const { redrive, pays } = await withDead(kind);
    const [a = "", b = ""] = pays;
    const waiting = await redrive.enqueue(pay, { n: 9 }, { delay: "1h" });
    expect(await redrive.deadLetters.remove([a, waiting.id, "nobody"])).toEqual({ removed: 1, refused: 1, missing: 1 });
    expect(await redrive.deadLetters.remove(a)).toEqual({ removed: 0, refused: 0, missing: 1 });
    expect(await redrive.jobs.get(a)).toBeNull();
    await redrive.deadLetters.retry(b);
    expect(await redrive.deadLetters.remove({ type: "pay", redriven: true })).toEqual({
      removed: 1,
      refused: 1,
      missing: 0,
    });
    expect(await redrive.deadLetters.remove({ all: true })).toEqual({ removed: 1, refused: 0, missing: 0 });
    expect((await redrive.deadLetters.stats()).total).toBe(0);
    expect((await redrive.jobs.count()).queued).toBe(2);
  });

  it("are exported as lines of JSON, and as a table without formulas", async () => {
    const { redrive, pays } = await withDead(kind);
    const lines: string[] = [];
    for await (const line of redrive.deadLetters.export("ndjson", { type: "pay" })) lines.push(line);
    const letters = lines.map((line) => JSON.parse(line) as { readonly id: string });
    expect(letters.map(({ id }) => id).toSorted()).toEqual(pays.toSorted());
    expect(letters[0]).toMatchObject({
      reason: "exhausted",
      payload: { n: 1 },
      history: [{ attempt: 1 }, { attempt: 2 }],
    });
    let table = "";
    for await (const line of redrive.deadLetters.export("csv", { type: "mail" })) table += line;
    expect(table.split("\r\n")[0]).toMatch(/^job_id,job_type,reason,failure_type/);
    expect(table).toContain(`"'=no such mailbox, ""really"""`);
    const bad = async (): Promise<void> => {
      for await (const _line of redrive.deadLetters.export("xml" as "csv")) continue;
    };
    expect(await codeOf(bad)).toBe("invalid_argument");
  });

  it("refuse targets and options that say nothing or cannot be", async () => {
    const { redrive } = await withDead(kind);
    const targets = [{}, { all: false }, { typ: "pay" }, { class: "odd" }, { reason: "odd" }, "", [""], null, 5];
    for (const target of targets) {
      expect(await codeOf(() => redrive.deadLetters.retry(target as DeadLetterTarget))).toBe("invalid_argument");
      expect(await codeOf(() => redrive.deadLetters.remove(target as DeadLetterTarget))).toBe("invalid_argument");
    }
    for (const filter of [{ from: "yesterday" }, { text: "" }, { text: "x".repeat(201) }, { service: "" }])
      expect(await codeOf(() => redrive.deadLetters.stats(filter))).toBe("invalid_argument");
    expect(await codeOf(() => redrive.deadLetters.retry({ all: true }, { delay: "soon" }))).toBe("invalid_argument");
    expect((await redrive.deadLetters.stats()).total).toBe(4);
  });

  it("reject, rather than throw, for a filter that does not exist", async () => {
    const redrive = await openRedrive(kind);
    expect(await codeOf(() => redrive.deadLetters.list({ typ: "pay" } as object))).toBe("invalid_argument");
  });

  it("refuse options of a retry that do not exist", async () => {
    const { redrive } = await withDead(kind);
    const options = { delya: "1h" } as object;
    expect(await codeOf(() => redrive.deadLetters.retry({ all: true }, options))).toBe("invalid_argument");
  });

  it("warn whoever enqueues under the key of a dead job", async () => {
    const { redrive, pays } = await withDead(kind);
    const again = await redrive.enqueue(pay, { n: 1 }, { key: "p1" });
    expect(again).toMatchObject({ id: pays[0], duplicate: true, state: "dead" });
  });
});
