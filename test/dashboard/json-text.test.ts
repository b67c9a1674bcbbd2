// JSON as text in the dashboard: laid out, compared and searched without a parser that would damage its numbers.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compact, diffOf, layout, lineOf, tokensOf } from "../../dashboard/json-text.ts";

describe("JSON as text", () => {
  it("keeps every value, and numbers byte for byte", () => {
    expect(compact(layout('{"n": 90071992547409931.0, "a":[1e400, {}]}'))).toBe(
      '{"n":90071992547409931.0,"a":[1e400,{}]}',
    );
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(JSON.parse(layout(text))).toEqual(JSON.parse(text));
        expect(compact(layout(text))).toBe(compact(text));
      }),
    );
  });
  it("leaves text that is no JSON as it is", () => {
    expect([tokensOf("{oops"), layout("{oops"), compact("")]).toEqual([null, "{oops", ""]);
  });
  it("lays out one value on a line", () => {
    expect(layout('{"a":[],"b":{"c":[1,"x"]}}')).toBe(
      '{\n  "a": [],\n  "b": {\n    "c": [\n      1,\n      "x"\n    ]\n  }\n}',
    );
  });
  it("finds the line of a path", () => {
    const text = layout('{"amount":1,"items":[{"price":1},{"x":{"amount":2},"price":"2"}],"price":3}');
    const lineWith = (path: string): string => (text.split("\n")[lineOf(text, path)] ?? "").trim();
    expect(lineWith("amount")).toBe('"amount": 1,');
    expect(lineWith("items[1].price")).toBe('"price": "2"');
    expect(lineWith("items.0.price")).toBe('"price": 1');
    expect(lineWith("price")).toBe('"price": 3');
    expect(lineWith("nowhere.to.be.seen")).toBe("{");
  });
  it("tells lines that are gone and new from those that stayed", () => {
    const lines = diffOf("a\nb\nc", "a\nx\nc\nd").map(({ kind, text, at }) => `${kind} ${text} ${at}`);
    expect(lines).toEqual(["same a 0", "gone b null", "new x 1", "same c 2", "new d 3"]);
  });
});
