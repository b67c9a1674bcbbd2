// Secrets are masked; a text without any stays byte for byte.
import { describe, expect, it } from "vitest";
import { redactJson, redactText } from "../../src/core/redact.ts";

describe("JSON text", () => {
  it.each([
    ['{"user":"ada","password":"x"}', '{"user":"ada","password":"***"}'],
    ['{"a":{"apiKey":{"deep":1},"n":1.5}}', '{"a":{"apiKey":"***","n":1.5}}'],
    ['{"token":9007199254740993,"id":9007199254740993}', '{"token":"***","id":9007199254740993}'],
    ['{ "pass\\u0077ord" : [1, {"x": "]"}], "n": 1.50 }', '{ "pass\\u0077ord" : "***", "n": 1.50 }'],
    ['{"url":"postgres://ada:secret@db/x"}', '{"url":"postgres://ada:***@db/x"}'],
    ['{"secret": "x', '{"secret": "***"'],
    ['"secret', '"secret'],
  ])("%s is shown as %s", (text, shown) => {
    expect(redactJson(text)).toBe(shown);
  });

  it("without secrets stays as it is, spaces, big numbers and all", () => {
    const text = '{ "id": 12345678901234567890, "é": "\\u0000", "n": 1e400 }';
    expect(redactJson(text)).toBe(text);
  });
});

describe("other text", () => {
  it("loses the passwords of connection strings", () => {
    expect(redactText("postgres//u:hunter2@host")).toBe("postgres//u:***@host");
    expect(redactText("cannot reach amqp://u:p@host/x?token=abc")).toBe("cannot reach amqp://u:***@host/x?token=***");
  });
});

describe("time", () => {
  it("grows with the text, whatever is in it", () => {
    const began = performance.now();
    for (const text of [
      "a".repeat(1_000_000),
      `"${"x:".repeat(500_000)}"`,
      " ".repeat(1_000_000),
      "://".repeat(300_000),
    ])
      redactJson(`{"secret":1,"text":"${text}"}`);
    // A second or so; minutes if it grew with the square of the text.
    expect(performance.now() - began).toBeLessThan(20_000);
  }, 60_000);
});
