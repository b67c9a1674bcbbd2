// The one door to terminals and logs: what comes out of it steers nothing, hides nothing and has its secrets masked.
import { describe, expect, it } from "vitest";
import { control, type Form, put, shownAs } from "../../src/system/output.ts";
import { lineLog } from "../../src/system/log.ts";

function written(form: Form, text: string, isTTY = true): string {
  let out = "";
  put({ write: (part) => (out += part) !== "", isTTY }, form, text);
  return out;
}

describe("text for people", () => {
  it.each([
    ["escapes", "\u001b[2J\u001b]0;x\u0007", "␛[2J␛]0;x␇"],
    ["C1 controls", "a\u009bb\u0085c\u007f", "a�b�c␡"],
    ["marks that turn text", "a\u202eb\u2066c\u061cd", "a�b�c�d"],
    ["characters without width", "a\u200bb\u200dc\u2060d\ufeffe\u00adf\u{e0041}g", "a�b�c�d�e�f�g"],
  ])("shows %s", (_what, text, shown) => {
    expect(written("text", text)).toBe(shown);
    expect(written("line", text)).toBe(shown);
    expect(written("data", text)).toBe(shown);
  });

  it("keeps lines and tabs, and is one line where a line is meant", () => {
    expect(written("text", "a\tb\n  c\n")).toBe("a\tb\n  c\n");
    expect(written("line", "a\tb\r\n  c\n\n \nd\n")).toBe("a b ⏎ c ⏎ d\n");
    expect(written("line", "a\n")).toBe("a\n");
  });

  it("has its secrets masked", () => {
    expect(written("text", "password: x\n--token y")).toBe("password: ***\n--token ***");
    expect(written("line", "postgres://USER:PASSWORD@HOST, first pass: 7 items\n")).toBe(
      "postgres://USER:PASSWORD@HOST, first pass: 7 items\n",
    );
  });

  it("steers the terminal only by what is marked, and the mark cannot be guessed", () => {
    const red = `${control("\u001b[31m")}a\u001b[1m${control("\u001b[39m")}`;
    expect(written("line", `${red}\n`)).toBe("\u001b[31ma␛[1m\u001b[39m\n");
    expect(written("text", "\ufdd0\u001b[31m\ufdd0")).toBe("�␛[31m�");
  });
});

describe("what tools read", () => {
  it("as JSON stays the same value, and secrets stay", () => {
    const value = { a: "\u009b\u202e\u200b\u{e0041}\u001b", password: "x" };
    const out = written("json", JSON.stringify(value));
    expect(JSON.parse(out)).toEqual(value);
    expect(out).toMatch(/^[\u0020-\u007e]+$/);
  });

  it("as data stays byte for byte where no terminal shows it", () => {
    expect(written("data", "a\u001b[2J,password=x\r\n", false)).toBe("a\u001b[2J,password=x\r\n");
  });
});

describe("the library's own log", () => {
  it("writes one safe line with its secrets masked", () => {
    const lines: string[] = [];
    const log = lineLog("info", (line) => lines.push(line));
    const fields = { job: "1\u001b[2J\nforged", apiKey: "a b c", deep: { token: "x", n: 1 }, url: "redis://u:p@h" };
    log.warn(fields, "bad\r\nerror password=x");
    expect(lines).toEqual([
      'warn  bad ⏎ error password=*** job=1␛[2J ⏎ forged apiKey=*** deep={"token":"***","n":1} url=redis://u:***@h\n',
    ]);
  });

  it("tells of errors by name and message, also deep in a field", () => {
    const lines: string[] = [];
    const log = lineLog("info", (line) => lines.push(line));
    log.error({ err: new TypeError("no token=x"), deep: { cause: new Error("y") } }, "failed");
    expect(lines).toEqual(['error failed err=TypeError: no token=*** deep={"cause":"Error: y"}\n']);
  });

  it("never throws, whatever the fields are", () => {
    const lines: string[] = [];
    const log = lineLog("info", (line) => lines.push(line));
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    const trap = {
      get secretive(): string {
        throw new Error("trap");
      },
    };
    log.info({ n: 10n, deep: [11n] }, "big");
    log.info({ circle, n: 1 }, "round");
    log.info({ trap }, "trapped");
    log.info(trap, "trapped at once");
    log.info({ s: Symbol("x"), f: () => 1, u: undefined }, "odd");
    Reflect.apply(log.info, log, [null, "none"]);
    Reflect.apply(log.info, log, ["text alone"]);
    expect(lines).toEqual([
      'info  big n=10 deep=["11"]\n',
      "info  round circle=(not shown: it has no JSON) n=1\n",
      "info  trapped trap=(not shown: it has no JSON)\n",
      "info  trapped at once (fields not shown: reading them failed)\n",
      "info  odd s= f= u=\n",
      "info  none\n",
      "info  text alone\n",
    ]);
  });
});

describe("the work", () => {
  it.each([
    ["space", " "],
    ["line breaks", "\n"],
    ["space and line breaks", " \n"],
    ["carriage returns", "\r"],
    ["tabs", "\t"],
    ["escapes", "\u001b"],
    ["half marks", "\ufdd0"],
  ])("on 1 MiB of %s is that of a few looks at each character", (_what, unit) => {
    const text = `a${unit.repeat(1_048_576 / unit.length)}b`;
    for (const form of ["text", "line", "json", "data"] as const) shownAs(form, text);
    lineLog("info", () => undefined).info({ text }, text);
  });
});
