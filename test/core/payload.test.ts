// Payloads and results on their way to JSON text: what is refused and where, and that nothing else is lost or changed.
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonFault } from "../../src/core/json-fault.ts";
import { JOB_BOUNDS } from "../../src/core/new-job.ts";
import { checkPayloadText, encodePayload, encodeResult } from "../../src/core/payload.ts";

const MIB = 1_048_576;

/** A value inside so many arrays, or objects, counted with the outermost. */
function nested(levels: number, wrap: (inner: unknown) => unknown = (inner) => [inner]): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = wrap(value);
  return value;
}

function cycle(): unknown {
  const value: Record<string, unknown> = { a: [1] };
  value.self = { back: value };
  return value;
}

function withHole(): unknown[] {
  const list: unknown[] = [];
  list[1] = "second";
  return list;
}

class Point {
  x = 1;
}

describe("encodePayload refuses", () => {
  const cases: [name: string, value: unknown, path: string, came: RegExp][] = [
    ["undefined", undefined, "payload", /got undefined/],
    ["undefined in an object", { a: { b: undefined } }, "payload.a.b", /got undefined/],
    ["undefined in an array", { a: [1, undefined] }, "payload.a[1]", /got undefined/],
    ["a hole in an array", { a: withHole() }, "payload.a[0]", /got undefined/],
    ["a function", { a: () => 1 }, "payload.a", /got a function/],
    ["a symbol", [Symbol("s")], "payload[0]", /got a symbol/],
    ["a key that is a symbol", { a: { [Symbol("s")]: 1 } }, "payload.a", /symbol/],
    ["a cycle", cycle(), "payload.self.back", /got a cycle/],
    ["a date", { at: new Date(0) }, "payload.at", /got a Date; send its text, e\.g\. toISOString\(\)/],
    ["a bigint", { n: [1n] }, "payload.n[0]", /got a bigint; send it as text/],
    ["a map", { a: new Map([[1, 2]]) }, "payload.a", /got a Map/],
    ["a set", new Set([1]), "payload", /got a Set/],
    ["a class instance", { p: new Point() }, "payload.p", /got a Point/],
    ["an error", new Error("no"), "payload", /got a Error|got an Error/],
    ["a regular expression", [/a/], "payload[0]", /got a RegExp/],
    ["a promise", { p: Promise.resolve(1) }, "payload.p", /got a Promise/],
    ["bytes", { b: new Uint8Array(2) }, "payload.b", /got a Uint8Array/],
    ["a buffer", { b: Buffer.from("a") }, "payload.b", /got a Buffer/],
    ["an address", { u: new URL("https://a.example") }, "payload.u", /got a URL/],
    ["a boxed number", { n: Object(1) }, "payload.n", /got a Number/],
    ["NaN", { n: Number.NaN }, "payload.n", /got NaN/],
    ["Infinity", [Number.POSITIVE_INFINITY], "payload[0]", /got Infinity/],
    ["-Infinity", [[Number.NEGATIVE_INFINITY]], "payload[0][0]", /got -Infinity/],
    ["a toJSON of its own", { a: { toJSON: () => 1 } }, "payload.a", /got a/],
  ];
  it.each(cases)("%s, with its path", (_name, value, path, came) => {
    expect(() => encodePayload(value)).toThrow(
      expect.objectContaining({
        code: "invalid_payload",
        message: expect.stringMatching(came),
        details: { path },
      }),
    );
    expect(() => encodePayload(value)).toThrow(`${path}: expected something JSON can carry; got`);
  });

  it.each([
    ["arrays", (inner: unknown) => [inner]],
    ["objects", (inner: unknown) => ({ a: inner })],
  ])("65 levels of %s, and takes 64", (_name, wrap) => {
    const fits = nested(64, wrap);
    expect(JSON.parse(encodePayload(fits))).toEqual(fits);
    expect(() => encodePayload(nested(65, wrap))).toThrow(
      expect.objectContaining({ code: "payload_too_large", message: expect.stringContaining("at most 64 levels") }),
    );
    expect(() => encodePayload(nested(100_000, wrap))).toThrow(expect.objectContaining({ code: "payload_too_large" }));
  });

  it.each([
    ["letters", "x", 1],
    ["two-byte letters", "é", 2],
    ["emoji", "😀", 4],
  ])("one byte over 1 MiB of %s, and takes 1 MiB", (_name, letter, bytes) => {
    const fits = letter.repeat((MIB - 4) / bytes) + "xx";
    expect(Buffer.byteLength(encodePayload(fits))).toBe(MIB);
    expect(() => encodePayload(`${fits}x`)).toThrow(
      expect.objectContaining({
        code: "payload_too_large",
        message: expect.stringContaining(`${MIB} bytes; got ${MIB + 1}`),
      }),
    );
  });

  it("by a limit of the caller's", () => {
    expect(encodePayload("abc", 5)).toBe('"abc"');
    expect(() => encodePayload("abcd", 5)).toThrow(expect.objectContaining({ code: "payload_too_large" }));
    expect(encodePayload("x".repeat(2 * MIB), JOB_BOUNDS.payloadBytesMost)).toHaveLength(2 * MIB + 2);
  });
});

describe("encodePayload keeps", () => {
  it("every JSON value", () => {
    const json = fc.jsonValue({ maxDepth: 6, stringUnit: "binary" });
    fc.assert(
      fc.property(json, (value) => {
        // JSON text has no -0; the limits of numbers are documented.
        const expected = JSON.parse(JSON.stringify(value)) as unknown;
        expect(JSON.parse(encodePayload(value))).toStrictEqual(expected);
        expect(checkPayloadText(encodePayload(value))).toBe(encodePayload(value));
      }),
      { numRuns: 500 },
    );
  });

  it.each(["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "", "a.b", "\0"])(
    "%j as a key",
    (key) => {
      const text = `{${JSON.stringify(key)}:{"polluted":true}}`;
      const encoded = encodePayload(JSON.parse(text));
      expect(encoded).toBe(text);
      expect(Object.hasOwn(JSON.parse(encoded) as object, key)).toBe(true);
      expect(Reflect.get({}, "polluted")).toBeUndefined();
    },
  );

  it("U+0000 and lone surrogates, escaped", () => {
    expect(encodePayload("a\0b")).toBe('"a\\u0000b"');
    expect(encodePayload(["\ud800", "\udc00", "\ud83d\ude00"])).toBe('["\\ud800","\\udc00","😀"]');
    expect(encodePayload({ "\ud800": 1 })).toBe('{"\\ud800":1}');
    expect(encodePayload("\ud800").isWellFormed()).toBe(true);
  });

  it("objects without a prototype, of another realm, and seen twice", () => {
    expect(encodePayload(Object.assign(Object.create(null), { a: 1 }))).toBe('{"a":1}');
    expect(encodePayload(runInNewContext("({ a: [{ b: 1 }] })"))).toBe('{"a":[{"b":1}]}');
    const shared = { s: 1 };
    expect(encodePayload([shared, shared, { shared }])).toBe('[{"s":1},{"s":1},{"shared":{"s":1}}]');
  });

  it("a toJSON that is data", () => {
    expect(encodePayload({ toJSON: "text" })).toBe('{"toJSON":"text"}');
  });

  it("null, false, 0 and the empty text", () => {
    expect([null, false, 0, "", [], {}].map((value) => encodePayload(value))).toEqual([
      "null",
      "false",
      "0",
      '""',
      "[]",
      "{}",
    ]);
  });
});

describe("encodeResult", () => {
  it("keeps what JSON can carry", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        expect(encodeResult(value)).toBe(JSON.stringify(value));
      }),
    );
  });

  it("of nothing is nothing", () => {
    expect(encodeResult(undefined)).toBeNull();
    expect(encodeResult(null)).toBe("null");
  });

  it.each<[string, unknown, string]>([
    ["a cycle", cycle(), "object"],
    ["a bigint", 1n, "bigint"],
    ["a bigint inside", { n: 1n }, "object"],
    ["a function", () => 1, "function"],
    ["a symbol", Symbol("s"), "symbol"],
    [
      "a getter that throws",
      Object.defineProperty({}, "a", { get: () => JSON.parse("{"), enumerable: true }),
      "object",
    ],
    ["a toJSON that gives nothing", { toJSON: () => undefined }, "object"],
    ["a revoked proxy", revoked(), "object"],
  ])("of %s is a marker, never an error", (_name, value, type) => {
    expect(encodeResult(value)).toBe(JSON.stringify({ $unserializable: type }));
  });

  it("of more than 64 KiB is a marker with its size", () => {
    const fits = "é".repeat(32_767);
    expect(encodeResult(fits)).toBe(JSON.stringify(fits));
    expect(encodeResult(`${fits}x`)).toBe(JSON.stringify({ $truncated: true, bytes: 65_537 }));
  });

  it("of something too deep to write is a marker, never an error", () => {
    expect(() => encodeResult(nested(200_000))).not.toThrow();
  });
});

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

describe("checkPayloadText", () => {
  it.each([
    ' \t\r\n{ "a" : [ ] }\n',
    "9007199254740993",
    "-0",
    "1e400",
    '{"a":1,"a":2}',
    '"\\u0000"',
    '"\\ud800"',
    '{"__proto__":1,"constructor":2}',
    '"😀"',
    "null",
  ])("keeps %j byte for byte", (text) => {
    expect(checkPayloadText(text)).toBe(text);
  });

  it.each(["", " ", "{", "undefined", "NaN", "'a'", "{a:1}", "[1,]", '"\0"', '"a\nb"', "1 2", "\ufeff1", '"\\x"'])(
    "refuses %j",
    (text) => {
      expect(() => checkPayloadText(text)).toThrow(
        expect.objectContaining({
          code: "invalid_payload",
          message: expect.stringContaining("payload: expected JSON"),
        }),
      );
    },
  );

  it.each([
    ['{"password":hunter2}', "line 1, column 13, where a value was expected"],
    ["hunter2", "line 1, column 1, where a value was expected"],
    ['{"a":"hunter2', "line 1, column 6, where a string with its closing quote was expected"],
    ['{"a":1,\n "b":[1,2,],\n}', "line 2, column 11, where a value was expected"],
    ['{"a":1\n,}', "line 2, column 2, where a name in double quotes was expected"],
    ["{a:1}", "line 1, column 2, where a name in double quotes or } was expected"],
    ['{"a" 1}', "line 1, column 6, where a colon was expected"],
    ['{"a":1 "b":2}', "line 1, column 8, where a comma or the end of the list or object was expected"],
    ['{"a":[1}', "line 1, column 8, where a comma or the end of the list or object was expected"],
    ["[tru", "line 1, column 2, where a value or ] was expected"],
    ['{"a":', "its end at line 1, column 6, where a value was expected"],
    ["[1] 2", "line 1, column 5, where nothing more was expected"],
    ['"a\nb"', "line 1, column 3, where an escape such as \\n was expected"],
    ['"a\\xb"', "line 1, column 3, where a legal escape was expected"],
  ])("says where %j is no JSON, and quotes nothing of it", (text, place) => {
    const message = `payload: expected JSON; got something else at ${place}; quote strings and keys`;
    expect(() => checkPayloadText(text)).toThrow(expect.objectContaining({ message }));
  });

  it("finds no fault exactly where JSON.parse finds none", () => {
    const piece = fc.constantFrom(
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      '"a"',
      '"\\n"',
      '"\\u00e9"',
      "1",
      "-0.5e3",
      "01",
      "true",
      "nul",
      " ",
      "\n",
      '"',
      "x",
    );
    const isLegal = (text: string): boolean => {
      try {
        return JSON.parse(text) !== undefined;
      } catch {
        return false;
      }
    };
    const any = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(""));
    const broken = fc.tuple(fc.json(), fc.nat(), piece).map(([text, at, extra]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + extra + text.slice(place);
    });
    const property = fc.property(fc.oneof(any, broken, fc.json()), (text) => {
      expect(jsonFault(text) === null, text).toBe(isLegal(text));
    });
    fc.assert(property, { numRuns: 3_000 });
  });

  it("escapes lone surrogates and changes nothing else", () => {
    expect(checkPayloadText('["\ud800","😀","\udc00"]')).toBe('["\\ud800","😀","\\udc00"]');
    const text = fc
      .string({ unit: "binary" })
      .map((value) => `{"k":${JSON.stringify(value).replace(/\\u(d[89a-f]..)/g, raw)}}`);
    fc.assert(
      fc.property(text, (given) => {
        const checked = checkPayloadText(given);
        expect(checked.isWellFormed()).toBe(true);
        expect(JSON.parse(checked)).toStrictEqual(JSON.parse(given));
      }),
      { numRuns: 500 },
    );
  });

  it("refuses 65 levels and one byte too many, and takes 64 and the last byte", () => {
    const levels = (count: number) => `${"[".repeat(count)}${"]".repeat(count)}`;
    expect(checkPayloadText(levels(64))).toBe(levels(64));
    expect(() => checkPayloadText(levels(65))).toThrow(expect.objectContaining({ code: "payload_too_large" }));
    expect(() => checkPayloadText(levels(200_000))).toThrow(expect.objectContaining({ code: "payload_too_large" }));
    const text = JSON.stringify("x".repeat(MIB - 2));
    expect(checkPayloadText(text)).toBe(text);
    expect(() => checkPayloadText(`${text} `)).toThrow(expect.objectContaining({ code: "payload_too_large" }));
    expect(() => checkPayloadText("123456", 5)).toThrow(expect.objectContaining({ code: "payload_too_large" }));
  });
});

/** The lone surrogate itself in the place of its escape. */
function raw(_escape: string, code: string): string {
  return String.fromCharCode(Number.parseInt(code, 16));
}
