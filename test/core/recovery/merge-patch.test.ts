// A merge patch on text: what it means is what RFC 7396 says, and every byte that it does not name stays.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openPatch, patchText } from "../../../src/core/recovery/merge-patch.ts";

/** The algorithm of RFC 7396, section 2, on parsed values. */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const isObject = typeof target === "object" && target !== null && !Array.isArray(target);
  const fields = new Map<string, unknown>(isObject ? Object.entries(target) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) fields.delete(name);
    else fields.set(name, merged(fields.get(name), value));
  }
  return Object.fromEntries(fields);
}

describe("a merge patch", () => {
  // The examples of RFC 7396, appendix A, but those whose patch is no object.
  it.each([
    ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
    ['{"a":"b"}', '{"a":null}', "{}"],
    ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
    ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
    ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
    ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
    ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
    ["[1,2]", '{"a":"b","c":null}', '{"a":"b"}'],
    ["{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
  ])("of %s by %s gives %s", (payload, patch, after) => expect(patchText(payload, patch)).toBe(after));

  it.each([
    ["numbers beyond 2^53", '{"id":9007199254740993,"to":"a"}', '{"to":"b"}', '{"id":9007199254740993,"to":"b"}'],
    ["numbers beyond a double", '{"n":1e400,"m":1.50,"to":1}', '{"to":2}', '{"n":1e400,"m":1.50,"to":2}'],
    ["numbers of the patch", '{"n":1}', '{"n":9007199254740993}', '{"n":9007199254740993}'],
    ["lone surrogates", '{"s":"\\ud800","to":1}', '{"to":"\\udc00"}', '{"s":"\\ud800","to":"\\udc00"}'],
    ["escapes", '{"\\u0061":"\\/","to":1}', '{"to":2}', '{"\\u0061":"\\/","to":2}'],
    ["the written form of a name", '{"\\u0061":1}', '{"a":2}', '{"\\u0061":2}'],
    ["duplicate keys that it does not name", '{"a":1,"a":2,"b":1}', '{"b":2}', '{"a":1,"a":2,"b":2}'],
    ["the first of two equal keys", '{"a":1,"a":2}', '{"a":3}', '{"a":1,"a":3}'],
    ["white space", ' {\n\t"a" : 1 ,\n\t"b" : [ 1 ]\n} \n', '{"a":2}', ' {\n\t"a" : 2 ,\n\t"b" : [ 1 ]\n} \n'],
    ["the order of keys", '{"b":1,"10":1,"2":1,"a":1}', '{"2":2}', '{"b":1,"10":1,"2":2,"a":1}'],
    ["keys that JavaScript treats apart", '{"__proto__":1,"a":1}', '{"__proto__":2}', '{"__proto__":2,"a":1}'],
    ["what an empty patch says nothing about", '{ "a" : { } }', '{"a":{}}', '{ "a" : { } }'],
  ])("keeps %s", (_, payload, patch, after) => expect(patchText(payload, patch)).toBe(after));

  it("removes a field wherever it stands, with every repeat", () => {
    const payload = '{\n  "a": 1,\n  "b": 2,\n  "c": 3\n}';
    expect(patchText(payload, '{"a":null}')).toBe('{\n  "b": 2,\n  "c": 3\n}');
    expect(patchText(payload, '{"b":null}')).toBe('{\n  "a": 1,\n  "c": 3\n}');
    expect(patchText(payload, '{"c":null}')).toBe('{\n  "a": 1,\n  "b": 2\n}');
    expect(patchText('{"a":1,"b":2,"a":3}', '{"a":null}')).toBe('{"b":2}');
  });

  it("writes new fields in the manner of those before them", () => {
    expect(patchText('{\n  "a": 1\n}', '{"b":2,"c":{"d":null,"e":[null]}}')).toBe(
      '{\n  "a": 1,\n  "b": 2,\n  "c": {"e":[null]}\n}',
    );
    expect(patchText('{ "a": 1 }', '{"a":null,"b":2}')).toBe('{"b":2}');
  });

  it("takes the last of equal keys of the patch", () => {
    expect(patchText('{"a":1}', '{"a":2,"a":null}')).toBe("{}");
    expect(patchText("{}", '{"a":null,"a":2}')).toBe('{"a":2}');
  });

  it("means what RFC 7396 says, for any two values", () => {
    const name = fc.constantFrom("a", "b", "c", "__proto__", "\u2028", "10", "é");
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom(null, true, 0, -0.5, 1e21, "", 'x"\\', "\ud800", "{}"),
        fc.array(tie("value"), { maxLength: 3 }),
        fc
          .uniqueArray(fc.tuple(name, tie("value")), { selector: ([key]) => key, maxLength: 4 })
          .map(Object.fromEntries),
      ),
    }));
    const object = fc.dictionary(name, value, { maxKeys: 4 });
    const space = fc.constantFrom("", " ", "\n\t");
    const written = ([any, between]: readonly [unknown, string]): string => JSON.stringify(any, null, between);
    const [text, change] = [fc.tuple(value, space).map(written), fc.tuple(object, space).map(written)];
    fc.assert(
      fc.property(text, change, (payload, patch) => {
        const after = patchText(payload, patch);
        expect(JSON.parse(after)).toEqual(merged(JSON.parse(payload), JSON.parse(patch)));
        // A second time changes nothing.
        expect(patchText(after, patch)).toBe(after);
      }),
      { numRuns: 1_000 },
    );
  });

  it("leaves the text of every field alone that it does not name", () => {
    const raw = fc.constantFrom(
      "9007199254740993",
      "1e400",
      "-0.0",
      '"\\ud800"',
      '[ 1 , { "a" :1.0} ]',
      '{"z":1,"z":2}',
      "null",
    );
    const space = fc.constantFrom("", " ", "\n  ");
    const field = fc.tuple(fc.constantFrom("a", "b", "c", "d"), raw, space, space);
    fc.assert(
      fc.property(fc.array(field, { maxLength: 6 }), fc.subarray(["a", "b"]), fc.boolean(), (fields, names, isNull) => {
        const written = (some: typeof fields): string =>
          `{${some.map(([name, text, one, two]) => `${one}"${name}"${two}:${one}${text}`).join(",")}}`;
        const patch = JSON.stringify(Object.fromEntries(names.map((name) => [name, isNull ? null : 7])));
        const after = patchText(written(fields), patch);
        const untouched = fields.filter(([name]) => !names.includes(name));
        if (isNull) expect(after).toBe(written(untouched));
        else for (const each of untouched) expect(after).toContain(written([each]).slice(1, -1));
      }),
      { numRuns: 500 },
    );
  });
});

describe("it refuses", () => {
  it.each([
    ["{", "{}", /^payload: expected JSON; got something else/],
    ["{}", "{a:1}", /^patch: expected JSON; got something else/],
    ["", "{}", /^payload: expected JSON/],
    ["{}", "", /^patch: expected JSON/],
    ["{}", "{} {}", /^patch: expected JSON/],
    [`${"[".repeat(65)}${"]".repeat(65)}`, "{}", /^payload: expected at most 64 levels/],
    ["{}", `${'{"a":'.repeat(65)}1${"}".repeat(65)}`, /^patch: expected at most 64 levels/],
    ['{"a":1}', "null", /^patch: expected a JSON object; got null; name the fields/],
    ['{"a":1}', " [1]", /^patch: expected a JSON object; got a list; name the fields/],
    ['{"a":1}', '"a"', /^patch: expected a JSON object; got a string; name the fields/],
    ['{"a":1}', "7", /^patch: expected a JSON object; got a number; name the fields/],
    ["{}", 7 as unknown as string, /^patch: expected something JSON can carry; got a number/],
  ])("%j changed by %j", (payload, patch, said) => expect(() => patchText(payload, patch)).toThrow(said));

  it("a result over the limit, but not one that is no longer than before", () => {
    const patch = openPatch('{"a":"1234567890"}');
    expect(() => patch("{}", 10)).toThrow(/^payload may have at most 10 bytes; got 18/);
    expect(patch('{"a":"0987654321"}', 10)).toBe('{"a":"1234567890"}');
  });
});

it("does work that grows with the text alone", () => {
  const wide = `{${Array.from({ length: 20_000 }, (_, at) => `"k${at}":[{"a":1}]`).join(",")},"b":1}`;
  expect(patchText(wide, '{"b":2}').endsWith(',"b":2}')).toBe(true);
  const deep = `${'{"a":'.repeat(60)}{"x":"${"y".repeat(500_000)}"}${"}".repeat(60)}`;
  const patch = `${'{"a":'.repeat(60)}{"z":1}${"}".repeat(60)}`;
  expect(patchText(deep, patch).length).toBe(deep.length + 6);
  const same = `{${Array.from({ length: 20_000 }, () => '"a":{"a":1}').join(",")}}`;
  expect(patchText(same, '{"a":{"a":2}}').endsWith('"a":{"a":1},"a":{"a":2}}')).toBe(true);
  expect(patchText(same, `{${Array.from({ length: 20_000 }, (_, at) => `"n${at}":1`).join(",")}}`)).toContain(
    '"n19999":1',
  );
});
