// What goes to a terminal: tables, bars, times, and text from outside that must not steer it.
import { describe, expect, it } from "vitest";
import { masked, readableJson, safeLine, safeText } from "../../src/core/safe-text.ts";
import { createBench } from "../support/cli.ts";
import { cutTo, tableText, widthOf } from "../../src/cli/table.ts";
import { bar, counted, relativeTime } from "../../src/cli/format.ts";
import { claimedText, runsText } from "../../src/cli/worker-summary.ts";
import { zeroCounts } from "../../src/report/reporter.ts";

const paint = (_style: string, text: string): string => text;

describe("a table", () => {
  const columns = [{ title: "ID" }, { title: "TYPE", least: 6 }, { title: "ERROR", least: 8, optional: true as const }];
  const rows = [
    ["12345678", "thumbnail", "something went wrong"],
    ["1", "漢字", "x"],
  ];

  it("aligns columns, also with wide characters", () => {
    expect(tableText(columns, rows, { width: Number.POSITIVE_INFINITY, paint })).toBe(
      "ID        TYPE       ERROR\n12345678  thumbnail  something went wrong\n1         漢字       x\n",
    );
  });

  it.each([40, 34, 30, 26, 20, 18])("fits %i columns", (width) => {
    const lines = tableText(columns, rows, { width, paint }).trimEnd().split("\n");
    expect(Math.max(...lines.map(widthOf))).toBeLessThanOrEqual(width);
    expect(lines[0]?.includes("ERROR")).toBe(width >= 26);
    expect(lines[1]?.startsWith("12345678")).toBe(true);
  });

  it("says in a line below which columns are not shown, unless nothing stood in them", () => {
    const narrow = tableText(columns, rows, { width: 24, paint });
    expect(narrow.split("\n").slice(-2)).toEqual(["ERROR not shown at 24 c…", ""]);
    const wide = tableText(columns, [["1".repeat(60), "thumbnail", "x"]], { width: 72, paint });
    expect(wide).toContain("\nERROR not shown at 72 columns; widen the terminal or use --json\n");
    const empty = tableText(columns, [["1".repeat(60), "thumbnail", ""]], { width: 72, paint });
    expect(empty).toBe(`ID${" ".repeat(60)}TYPE\n${"1".repeat(60)}  thumbnail\n`);
    const indented = tableText(columns, rows, { width: 27, paint, indent: 2 });
    expect(indented).toContain("ERROR not shown at 27");
  });

  it("leaves out as few columns as possible, and shortens the widest first", () => {
    const two = [{ title: "A", least: 4, optional: true as const }, ...columns];
    const [head = ""] = tableText(two, [["aaaaaaaa", "12345678", "thumbnail", "broken"]], { width: 28, paint }).split(
      "\n",
    );
    expect(head.split(/ +/)).toEqual(["ID", "TYPE", "ERROR"]);
    const pair = [
      { title: "A", least: 2 },
      { title: "B", least: 2 },
    ];
    const lines = tableText(pair, [["a".repeat(30), "b".repeat(12)]], { width: 22, paint }).split("\n");
    expect(lines[1]).toBe("aaaaaaaaa…  bbbbbbbbb…");
  });

  it("cuts on characters, not in the middle of one", () => {
    expect(cutTo("a漢字b", 4)).toBe("a漢…");
    expect(cutTo("😀😀😀", 4)).toBe("😀…");
    expect(cutTo("e\u0301e\u0301", 2)).toBe("e\u0301e\u0301");
  });
});

describe("text from outside", () => {
  it("cannot steer a terminal", () => {
    expect(safeText("\u001b[2J\u0007a\u009bb\u202ec\td\n")).toBe("␛[2J␇a�b�c\td\n");
    expect(safeLine("one\r\n  two\tthree")).toBe("one ⏎ two three");
  });

  it.each([
    ["postgres://me:hunter2@db:5432/x", "postgres://me:***@db:5432/x"],
    ["at redis://:hunter2@r failed", "at redis://:***@r failed"],
    ["postgres://me:hun/ter2@db/x", "postgres://me:***@db/x"],
    ["https://a.b/c?token=hunter2&x=1", "https://a.b/c?token=***&x=1"],
    ["https://a.b:80/c", "https://a.b:80/c"],
    ["sqlite:./a.db", "sqlite:./a.db"],
  ])("loses its passwords: %s", (text, expected) => expect(masked(text)).toBe(expected));

  it("as JSON is indented, with secrets masked and numbers as they are", () => {
    expect(readableJson('{"a":1,"apiKey":"x","nested":{"Password":{"y":1}}}')).toBe(
      '{\n  "a": 1,\n  "apiKey": "***",\n  "nested": {\n    "Password": "***"\n  }\n}',
    );
    expect(readableJson('{"n":12345678901234567890,"token":"x\\"y","t":[1]}')).toBe(
      '{"n":12345678901234567890,"token":"***","t":[1]}',
    );
    expect(readableJson("{oops")).toBe("{oops");
  });
});

describe("words", () => {
  it("for times, counts and bars", () => {
    expect([0, -500, -5_400, 5_400, -90_000, -86_400_000].map((ms) => relativeTime(1e9 + ms, 1e9))).toEqual([
      "now",
      "now",
      "5s ago",
      "in 5s",
      "1.5m ago",
      "1d ago",
    ]);
    expect([counted(1, "job"), counted(1_234, "job"), counted(0, "job")]).toEqual(["1 job", "1,234 jobs", "0 jobs"]);
    const counts = { ...zeroCounts(), claimed: 32_212, completed: 30_000, retried: 1_200, dead: 12, released: 1_000 };
    const said = "30,000 completed, 1,200 retried, 12 dead, 1,000 released";
    expect(runsText(counts)).toBe(`32,212 runs: ${said}`);
    expect(claimedText(counts)).toBe(`32,212 claimed, ${said}`);
    expect([bar(1, 4), bar(0.5, 4), bar(0, 4), bar(1 / 32, 4)]).toEqual(["████", "██", "", "▏"]);
  });
});

describe("answers about a job with secrets", () => {
  const PAYLOAD = { user: "ada", apiKey: "hunter2", body: '{"pin":"hunter2"}' };

  it("are masked for people, whole as JSON, and masked as JSON with --redact", async () => {
    const bench = createBench();
    await bench.run(["enqueue", "thing", JSON.stringify(PAYLOAD)]);
    const { items } = (await bench.json(["jobs", "list"])).document;
    const [{ id }] = items;
    const people = await bench.run(["jobs", "show", id]);
    expect(people.out).toContain('"apiKey": "***"');
    expect(people.out).not.toContain("hunter2");
    expect((await bench.json(["jobs", "show", id])).document.payload).toEqual(PAYLOAD);
    const { document } = await bench.json(["jobs", "show", id, "--redact"]);
    expect(document.payload).toEqual({ user: "ada", apiKey: "***", body: '{"pin":"***"}' });
    expect(document.id).toBe(id);
    expect((await bench.run(["jobs", "list", "--help"])).out).toMatch(/--json .*secrets included\n +--redact /);
  });

  it("show the code of an error without what steers a terminal, coloured or not", async () => {
    const bench = createBench();
    const code = '"\\u001b]0;x\\u0007\\nE\\u009b2J"';
    bench.write(
      "jobs.ts",
      `import { defineJob } from "redrive";
      export const bad = defineJob("bad", { maxAttempts: 1, run() { throw Object.assign(new Error("no"), { code: ${code} }); } });`,
    );
    await bench.run(["enqueue", "bad", "{}"]);
    await bench.run(["drain", "--jobs", "jobs.ts"]);
    const { items } = (await bench.json(["dlq", "list"])).document;
    const { out } = await bench.run(["dlq", "show", items[0].id], { columns: 100 });
    expect(out).toContain("\u001b[31m");
    // oxlint-disable-next-line no-control-regex
    expect(out.replace(/\u001b\[\d+m/g, "")).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  });
});

it("a list as JSON has the payloads that a list for people does not read", async () => {
  const bench = createBench();
  await bench.run(["enqueue", "thing", '{"a":1}']);
  expect((await bench.json(["jobs", "list"])).document.items[0].payload).toEqual({ a: 1 });
  expect((await bench.run(["jobs", "list"])).out).toMatch(/ thing +queued /);
});
