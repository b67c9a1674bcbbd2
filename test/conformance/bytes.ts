// Payloads, results and failures come back byte for byte, whatever they hold.
import { expect } from "vitest";
import type { Failure } from "../../src/core/job.ts";
import { add, end, finish, read, start, takeOne } from "../support/runs.ts";
import { complete, dead, failure, retry } from "../support/verdicts.ts";
import type { Suite } from "./suite.ts";

const TEXTS: readonly (readonly [name: string, text: string])[] = [
  ["null", "null"],
  ["an empty text", '""'],
  ["U+0000, escaped", '"before\\u0000after"'],
  ["lone surrogates, escaped", '["\\ud800","\\udfff","\\udc00\\ud800"]'],
  ["an emoji, raw and escaped", '["😀","\\ud83d\\ude00","👩‍👩‍👧‍👦"]'],
  ["every kind of white space around", ' \t\r\n{ "a" : [ ] }\n'],
  ["__proto__ and constructor as keys", '{"__proto__":{"polluted":true},"constructor":1,"prototype":2}'],
  ["one key twice", '{"a":1,"a":2}'],
  ["integers beyond 2^53", "[9007199254740993,-9223372036854775809,123456789012345678901234567890]"],
  ["-0, 1e400 and 0.10", "[-0,1e400,-1E+400,0.10,1.0,1e0]"],
  ["bytes that mean something to SQL", '"\'; drop table job; -- %s $1 ? :a @b \\\\ \\" `"'],
  ["composed and decomposed letters", '["\u00e9","e\u0301","\ufb01"]'],
  ["the byte order mark and separators", '"\ufeff\u2028\u2029\u0085"'],
  ["noncharacters", '"\uffff\ufffe\u{10ffff}"'],
  ["right-to-left text", '"\u202eabc \u05d0\u05d1\u05d2"'],
  ["depth 1000", `${"[".repeat(1_000)}${"]".repeat(1_000)}`],
  ["1 MiB of text", `"${"x".repeat(1_048_574)}"`],
  ["1 MiB of emoji", `"${"😀".repeat(262_143)}"`],
];

const FAILURES: readonly (readonly [name: string, failure: Failure])[] = [
  ["nothing optional", failure()],
  ["everything optional", failure({ retryAfterMs: 1_500, code: "429" })],
  ["no stack", failure({ stack: null })],
  ["empty texts", failure({ name: "", message: "", stack: "", fingerprint: "", code: "" })],
  ["U+0000", failure({ name: "E\0", message: "a\0b\0", stack: "\0", fingerprint: "\0f", code: "\0" })],
  ["lone surrogates", failure({ name: "\ud800", message: "a\udc00b\ud83d", stack: "\udfff\ud800" })],
  ["emoji and every line ending", failure({ message: "😀\r\n\u2028\u2029\n", stack: "a\r\nb\rc" })],
  ["the sign that people see for U+0000", failure({ message: "␀ and \0" })],
  ["a backslash before a letter", failure({ message: "\\u0000 \\ud800 \\" })],
  ["8 KiB", failure({ message: "é".repeat(4_096), stack: "s".repeat(8_192) })],
];

/** Tests of what a store must not touch. */
export function byteFacts({ fact }: Suite): void {
  // One store for all texts: opening one takes longer than what is asked of it here.
  fact("keeps payloads, whatever they hold", async ({ store }) => {
    for (const [name, text] of TEXTS) {
      const id = await add(store, { payload: text });
      expect((await read(store, id)).payload === text, name).toBe(true);
      const run = await takeOne(store, id);
      expect(run.payload === text, name).toBe(true);
      await end(store, run, dead());
      const { items } = await store.deadLetters({ limit: 100 });
      expect(items.find(({ job }) => job.id === id)?.job.payload === text, name).toBe(true);
      const listed = (await store.list({ limit: 100 })).items.find((job) => job.id === id);
      expect(listed?.payload === text, name).toBe(true);
      await store.remove([id]);
    }
  });

  fact("keeps results, whatever they hold", async ({ store }) => {
    for (const [name, text] of TEXTS) {
      const job = await finish(store, complete(text));
      expect(job.result === text, name).toBe(true);
    }
  });

  fact("keeps failures, whatever they hold", async ({ store }) => {
    for (const [name, why] of FAILURES) {
      const run = await start(store);
      expect((await end(store, run, retry({ failure: why }))).failure, name).toStrictEqual(why);
      const again = await takeOne(store, run.id);
      expect(again.failure, name).toStrictEqual(why);
      expect((await end(store, again, dead({ failure: why }))).failure, name).toStrictEqual(why);
      const { items } = await store.deadLetters({ limit: 100 });
      expect(items.find(({ job }) => job.id === run.id)?.failure, name).toStrictEqual(why);
      expect(
        (await store.history(run.id)).map((record) => record.failure),
        name,
      ).toStrictEqual([why, why]);
    }
  });

  fact("lets a hostile payload change nothing about objects", async ({ store }) => {
    const payload = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}';
    await finish(store, complete(payload), { payload });
    expect(Reflect.get({}, "polluted")).toBeUndefined();
  });

  fact("keeps names that mean something to objects", async ({ store }) => {
    for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
      const id = await add(store, { type: name, queue: name, service: name, tenant: name, key: name });
      expect(await read(store, id)).toMatchObject({ type: name, queue: name, service: name, tenant: name, key: name });
      await store.pause({ kind: "queue", name }, { forMs: null, reason: name });
      await store.setService(name, 0, name);
      await end(store, await takeOne(store, id), complete());
    }
    const { pauses, services } = await store.control();
    expect(pauses).toHaveLength(4);
    expect(services).toHaveLength(4);
  });
}
