// Fingerprints group failures by cause: measured on a labelled corpus, then on single rules and hostile input.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { classify } from "../../src/core/classify.ts";
import { failureFrom } from "../../src/core/failure.ts";
import { fingerprint } from "../../src/core/fingerprint.ts";
import { normalizeMessage } from "../../src/core/message-shape.ts";
import { CAUSES, type Sample } from "./fingerprint-corpus.ts";
import { cpuMs } from "../support/cpu-time.ts";

const fingerprintOf = (sample: Sample) => {
  const error = Object.assign(new Error(sample.message), { name: sample.name ?? "Error", ...sample.fields });
  const frames = (sample.frames ?? []).map((frame) => `    at ${frame}`);
  error.stack = [`${error.name}: ${sample.message}`, ...frames].join("\n");
  return failureFrom(error, classify(error, {}, [], 0)).fingerprint;
};

test("one cause has one fingerprint and two causes have two, on the labelled corpus", () => {
  const labelled = Object.entries(CAUSES).flatMap(([cause, samples]) =>
    samples.map((sample) => ({ cause, print: fingerprintOf(sample), message: sample.message })),
  );
  let together = 0;
  let wronglyTogether = 0;
  let apart = 0;
  const mistakes: string[] = [];
  labelled.forEach((a, index) => {
    for (const b of labelled.slice(index + 1)) {
      if (a.cause === b.cause && a.print === b.print) together++;
      if (a.cause === b.cause && a.print !== b.print) apart++;
      if (a.cause !== b.cause && a.print === b.print) wronglyTogether++;
      if ((a.cause === b.cause) !== (a.print === b.print))
        mistakes.push(`${a.cause}: ${a.message} | ${b.cause}: ${b.message}`);
    }
  });
  const precision = together / (together + wronglyTogether);
  const recall = together / (together + apart);
  const report = `precision ${precision.toFixed(4)}, recall ${recall.toFixed(4)}\n${mistakes.slice(0, 20).join("\n")}`;
  expect(Object.keys(CAUSES).length, report).toBeGreaterThanOrEqual(40);
  expect(precision, report).toBeGreaterThanOrEqual(0.95);
  expect(recall, report).toBeGreaterThanOrEqual(0.95);
});

describe("normalizeMessage", () => {
  test.each([
    ["User 42 not found", "User <n> not found"],
    ["User 550e8400-e29b-41d4-a716-446655440000 not found", "User <n> not found"],
    ["Cannot read properties of undefined (reading 'price')", "Cannot read properties of undefined (reading price)"],
    ["open '/srv/app/x.txt' failed", "open <value> failed"],
    ["can't parse \"abc\" or 'def', won't try", "can't parse <value> or <value>, won't try"],
    ["connect ECONNREFUSED 10.0.3.7:5432", "connect ECONNREFUSED <address>:5432"],
    ["read from 10.0.3.7:51234 failed", "read from <address> failed"],
    ["mail to bob.x+y@example.com bounced", "mail to <email> bounced"],
    ["GET https://u:p@api.example.com/v1/users/42?x=1 failed", "GET https://api.example.com/v1/users/<n> failed"],
    ["GET /users/42/orders failed", "GET /users/<n>/orders failed"],
    [`GET /users/${"a".repeat(32)} failed`, `GET /users/${"a".repeat(32)} failed`],
    [`GET /users/${"a".repeat(33)} failed`, "GET /users/<n> failed"],
    ["missing /data/in/cat.jpg", "missing <path>"],
    ["missing C:\\data\\cat.jpg", "missing <path>"],
    ["Request failed with status code 503", "Request failed with status code 503"],
    ["expired at 2024-01-02T03:04:05.678Z", "expired at <n>"],
    ["expired at Tue, 02 Jan 2024 03:04:05 GMT", "expired at <n>"],
    ["0xdeadbeef at 1.5s, -3", "<n> at <n>"],
    ["bad utf8 in s3 object", "bad utf8 in s3 object"],
    ["ids [1, 2, 3]", "ids [<n>]"],
    ["connect ECONNREFUSED ::1:5432", "connect ECONNREFUSED <address>:5432"],
    ["connect ECONNREFUSED localhost:5432", "connect ECONNREFUSED <address>:5432"],
    ["no answer of db-1.prod.example.com", "no answer of <address>"],
    ["getaddrinfo ENOTFOUND api.example.com", "getaddrinfo ENOTFOUND api.example.com"],
    ["open '/srv/app/templates/footer.html'", "open <path>/footer.html"],
    ["customer.tier is not a function", "<name>.tier is not a function"],
    ["(0 , a_1.tier) is not a function", "<name>.tier is not a function"],
    ["e is not iterable", "<name>. is not iterable"],
    ["Bad key at line 2, column 1:\n\nfoo: 1\n^", "Bad key at line <n>, column <n>"],
    ["in JSON at position 71 (line 1 column 72)", "in JSON at position <n>"],
    ["price in EUR, not in CHF", "price in <n>, not in <n>"],
    ["expected string, received undefined", "expected string, received undefined"],
    ["Site north cannot be read", "Site <n> cannot be read"],
    ["'customer_id'", "customer_id"],
    ["The 'size' argument is wrong, 'blue' too", "The size argument is wrong, <value> too"],
    ["class io.acme.Order cannot be cast (x is in module y of loader 'app')", "class Order cannot be cast"],
    ['Cannot invoke "String.trim()" because "<local1>" is null', "Cannot invoke String.trim()"],
    ['[ { "code": "invalid_type", "path": [ "items", 0, "price" ] } ]', "code:invalid_type path:[items,price]"],
    // Names that minifiers change, in messages of V8 and Node.
    ["orders.find(...).total is not a function", "<name>.total is not a function"],
    ["e[t].total is not a function", "<name>.total is not a function"],
    ["order?.total is not a function", "<name>.total is not a function"],
    ["a(...) is not a function", "<name>. is not a function"],
    ["(intermediate value).total is not a function", "<name>.total is not a function"],
    ["Class constructor Order cannot be called", "Class constructor <name> cannot be called"],
    ["must be a string. Received an instance of Order", "must be a string. Received an instance of <name>"],
    ["must be a string. Received function e", "must be a string. Received function <name>"],
    ["async run() { } could not be cloned.", "<source> could not be cloned."],
    // Data that V8 and Node write as it is.
    [`Unexpected token 'x', "{"a": x}" is not valid JSON`, "Unexpected token <value> is not valid JSON"],
    [`Unexpected token ''', ..."\n'b'"... is not valid JSON`, "Unexpected token <value> is not valid JSON"],
    ['Invalid regular expression: /[z-a] "(/u: Open group', "Invalid regular expression: <value>: Open group"],
    ["'in' operator to search for 'a' in north side", "<value> operator to search for <value> in <value>"],
    ["Cannot convert north to a BigInt", "Cannot convert <value> to a BigInt"],
    ["Invalid time zone specified: Mars/North", "Invalid time zone specified: <n>"],
    ["Invalid currency code : crown", "Invalid currency code : <n>"],
    ["EXDEV: rename '/in/b.json' -> '/out/b.json'", "EXDEV: rename <path> -> <path>"],
    // Values that other people's programs write.
    ["tenant=acme has no plan", "tenant=<n> has no plan"],
    ["Ticket #north is closed", "Ticket #<n> is closed"],
    [`Customer "Zoë "Zed" Adams" is blocked`, "Customer <value> is blocked"],
    ["Customer 'O'Brien & Sons' is blocked", "Customer <value> is blocked"],
    ["due on 4 October 2026", "due on <n>"],
    ["no texts in de_AT", "no texts in <n>"],
    ["refused by ::ffff:10.0.3.7:5432", "refused by <address>:5432"],
    ["", ""],
  ])("%j becomes %j", (message, expected) => {
    expect(normalizeMessage(message)).toBe(expected);
  });

  test("is stable when applied to a message with other numbers", () => {
    fc.assert(
      fc.property(fc.nat(), fc.uuid(), fc.nat(), fc.uuid(), (a, b, c, d) => {
        expect(normalizeMessage(`Order ${a} of ${b} failed`)).toBe(normalizeMessage(`Order ${c} of ${d} failed`));
      }),
      { seed: 10 },
    );
  });

  test.each([
    "a",
    "a.",
    "'",
    '"',
    "'a",
    '"\\',
    "/",
    "a/",
    "a@",
    "1.",
    "<n> ",
    "http://",
    "http ",
    "-",
    "`\n",
    "Mon ",
    "1,",
    "\n ",
    " (loader ",
    "(0 , a.",
    "::1",
    "line 1 column 1:\n",
    "\n\tat a.b(A.java:1)",
    '\n  File "a", line 1, in a',
    "\nTraceback (most recent call last)",
    "\nCaused by: a: ",
    "\n    at a (/b.js:1:1)",
    '[{"path":[',
    "a(...).b is not a function ",
    "a=",
    "a #",
    "' -> '",
    '"a "b" c',
    "'a'b ",
    "Unexpected token ",
    "Invalid regular expression: /",
    "\n    at findUser (/b.js:1:1)\n    at /b.js:1:1\n    at Generator.next (<anonymous>)",
  ])("takes no time for %j repeated to 10 MB", async (unit) => {
    const text = unit.repeat(Math.ceil(1e7 / unit.length));
    text.charCodeAt(1);
    const ms = await cpuMs(() => {
      normalizeMessage(text);
      fingerprint({ name: text, message: text, stack: `Error\n    at ${text}`, class: "transient" });
    });
    expect(ms).toBeLessThan(1_000);
  });
});

describe("fingerprint", () => {
  const base = { name: "Error", message: "boom", stack: null, class: "transient" } as const;

  test("is 16 hexadecimal characters for any text", () => {
    const text = fc.string({ unit: "binary" });
    fc.assert(
      fc.property(text, text, fc.option(text), (name, message, stack) => {
        expect(fingerprint({ name, message, stack, class: "transient" })).toMatch(/^[0-9a-f]{16}$/);
      }),
      { seed: 11, numRuns: 300 },
    );
  });

  test("differs by name, message, code and, without a stack, class", () => {
    const all = [
      base,
      { ...base, name: "TypeError" },
      { ...base, message: "bang" },
      { ...base, code: "EPIPE" },
      { ...base, class: "stuck" } as const,
    ];
    expect(new Set(all.map(fingerprint)).size).toBe(all.length);
  });

  test("has no collisions among 100,000 messages", () => {
    const words = (index: number) => index.toString(2).replaceAll("0", "x").replaceAll("1", "y");
    const prints = new Set(
      Array.from({ length: 100_000 }, (_, index) => fingerprint({ ...base, message: words(index) })),
    );
    expect(prints.size).toBe(100_000);
  });

  test("tells causes inside one wrapper apart, and only those", () => {
    const wrapped = (message: string) => {
      const error = new Error("job failed", { cause: new Error(message) });
      return failureFrom(error, classify(error, {}, [], 0)).fingerprint;
    };
    expect(wrapped("User 1 not found")).toBe(wrapped("User 77 not found"));
    expect(wrapped("User 1 not found")).not.toBe(wrapped("disk is slow"));
  });

  test("ignores line shifts, directories, minified names and frames of libraries and Node", () => {
    const stack = (...frames: string[]) => ["Error: boom", ...frames.map((frame) => `    at ${frame}`)].join("\n");
    const print = (...frames: string[]) => fingerprint({ ...base, stack: stack(...frames) });
    const expected = print("render (/app/src/a.ts:1:2)", "async Thumbnailer.run (/app/src/b.ts:3:4)");
    expect(print("render (/srv/a.ts:9:9)", "Thumbnailer.run (file:///srv/b.js:1:1)")).toBe(expected);
    expect(print("Object.render [as x] (C:\\app\\a.ts:9:9)", "async Thumbnailer.run (/b.js:1:1)")).toBe(expected);
    expect(print("parse (/app/node_modules/x/i.js:1:1)", "render (/a.ts:1:2)", "Thumbnailer.run (/b.ts:3:4)")).toBe(
      expected,
    );
    expect(print("render (/a.ts:1:2)", "node:internal/timers:5:5", "Thumbnailer.run (/b.ts:3:4)")).toBe(expected);
    expect(print("render (/a.ts:1:2)", "a.b (/c.js:1:1)", "Thumbnailer.run (/b.ts:3:4)")).toBe(expected);
    expect(print("draw (/app/src/a.ts:1:2)", "async Thumbnailer.run (/app/src/b.ts:3:4)")).not.toBe(expected);
    expect(print("/x/chunk-3fa9c2.js:1:99")).toBe(print("/y/chunk-77bb01.js:1:12"));
    // A bundler puts all files into one, so no file tells a cause.
    expect(print("/x/resize.ts:1:99")).toBe(print("/x/server.cjs:1:99"));
  });

  const weak = { name: "Error", message: "Order 7 not found", class: "transient" } as const;
  const of = (input: { readonly name: string; readonly message: string }, ...frames: string[]) =>
    fingerprint({ ...weak, ...input, stack: [`${input.name}: ${input.message}`, ...frames].join("\n    at ") });

  test("counts no caller for an answer of fetch that is not JSON, because Node from 24 on does not tell it", () => {
    const page = { name: "SyntaxError", message: `Unexpected token '<', "<!doctype "... is not valid JSON` };
    const undici = "parseJSONFromBytes (node:internal/deps/undici/undici:5880:19)";
    const bare = of(page, "JSON.parse (<anonymous>)", undici);
    expect(of(page, "JSON.parse (<anonymous>)", undici, "async Mailer.status (/app/mail.js:1:1)")).toBe(bare);
    expect(of(page, "JSON.parse (<anonymous>)", "readWebhook (/app/hook.js:1:1)")).not.toBe(bare);
    expect(of(page, "JSON.parse (<anonymous>)", "e (/app/server.js:1:1)")).not.toBe(bare);
  });

  test("skips what a bundled library exports, and undici's reader", () => {
    const library = "module.exports [as verify] (/app/node_modules/jsonwebtoken/verify.js:1:1)";
    const bundled = "module2.exports [as verify] (/app/dist/server.cjs:1:1)";
    const refresh = "Object.refresh (/app/dist/server.cjs:9:1)";
    expect(of(weak, bundled, refresh)).toBe(of(weak, library, refresh));
    const cut = { name: "SyntaxError", message: "Unexpected end of JSON input" };
    const read = (file: string) =>
      of(
        cut,
        `consumeEnd (${file}:1:1)`,
        `BodyReadable.<anonymous> (${file}:1:1)`,
        "BodyReadable.emit (node:events:1:1)",
      );
    expect(read("/app/dist/server.cjs")).toBe(read("/app/node_modules/undici/readable.js"));
  });

  test("counts a helper with its caller, and not at all where a build took the caller's name", () => {
    const find = "findOrder (/app/a.js:1:1)";
    const cancel = of(weak, find, "cancelOrder (/app/a.js:2:2)");
    const show = of(weak, find, "/app/a.js:2:2", "loop (/app/main.js:1:1)");
    const compiled = of(weak, find, "/app/a.js:2:2", "Generator.next (<anonymous>)", "_next (/app/a.js:1:1)");
    expect(new Set([cancel, show, compiled]).size).toBe(3);
    expect(compiled).toBe(of(weak, "e (/app/a.js:1:1)", "t (/app/a.js:2:2)"));
    expect(of(weak, "Shop.findOrder (/app/a.js:1:1)", "t (/app/a.js:2:2)")).toBe(compiled);
    const failed = { name: "Error", message: "Invariant failed" };
    const invariant = (caller: string) => of(failed, "invariant (/app/a.js:1:1)", `${caller} (/app/a.js:2:2)`);
    expect(invariant("countBoxes")).not.toBe(invariant("stackBoxes"));
  });

  test.each([
    ["DataCloneError", "() => {} could not be cloned."],
    ["TypeError", "pages is not iterable"],
  ])("takes %s: %s for one cause, whatever the function", (name, message) =>
    expect(of({ name, message }, "copy (/app/a.js:1:1)")).toBe(of({ name, message }, "e (/app/server.js:1:1)")),
  );

  test("takes a class that a bundler numbered for the same class", () => {
    const named = (name: string) => of({ ...weak, name }, "cancel (/app/a.js:1:1)");
    expect(named("OrderMissing$1")).toBe(named("OrderMissing"));
    expect(named("OrderMissing2")).toBe(named("OrderMissing"));
    expect(named("OrderClosed")).not.toBe(named("OrderMissing"));
  });
});
