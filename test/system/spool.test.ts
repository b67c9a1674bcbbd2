// A spool gives back every text in order, whether it stays in memory or needs a file, and leaves no file.
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openSpool } from "../../src/system/spool.ts";
import { testFolder } from "../support/database-file.ts";

/** Makes the folder for temporary files an empty one of the test's own. */
function ownTemporaryFolder(): string {
  const folder = join(testFolder(), "tmp");
  mkdirSync(folder);
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  onTestFinished(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  });
  return folder;
}

it.each([
  ["in memory", 1_000_000],
  ["in a file, but for the last ones", 100],
  ["in a file", 0],
])("gives back all texts in order, %s", async (_, memoryBytes) => {
  const folder = ownTemporaryFolder();
  const spool = openSpool(memoryBytes);
  const texts = [
    "",
    "a\nb",
    "é😀\u2028",
    "\0",
    ...Array.from({ length: 50 }, (__, n) => `text ${n}`),
    "x".repeat(70_000),
    "end",
  ];
  for (const text of texts) await spool.add(text);
  for (let round = 0; round < 2; round++) {
    const read: string[] = [];
    for await (const text of spool.all()) read.push(text);
    expect(read).toEqual(texts);
  }
  // An open file has no name, so that a crash leaves nothing.
  expect(readdirSync(folder)).toEqual([]);
  await spool.close();
  await spool.close();
  expect(readdirSync(folder)).toEqual([]);
});

it("says where the file cannot be written", async () => {
  process.env.TMPDIR = join(ownTemporaryFolder(), "none");
  const spool = openSpool(0);
  await expect(spool.add("a")).rejects.toThrow(/ENOENT/);
  await spool.close();
});
