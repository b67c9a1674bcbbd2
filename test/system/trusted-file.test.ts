// Files that come and go while they are checked.
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { afterAll, expect, it } from "vitest";
import { whyRefused } from "../../src/system/trusted-file.ts";

const folder = mkdtempSync(join(tmpdir(), "redrive-trusted-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const TOGGLE = `
  const { rmSync, writeFileSync } = require("node:fs");
  const { workerData: { path, ended } } = require("node:worker_threads");
  while (Atomics.load(ended, 0) === 0) {
    writeFileSync(path, "", { mode: 0o600 });
    rmSync(path, { force: true });
  }
`;

it("says nothing of a file that another process deletes meanwhile", async () => {
  const path = join(folder, "journal");
  const ended = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(TOGGLE, { eval: true, workerData: { path, ended } });
  await new Promise((resolve) => worker.once("online", resolve));
  const said = new Set<string | null>();
  for (let looks = 0; looks < 20_000; looks++) said.add(whyRefused(path));
  Atomics.store(ended, 0, 1);
  await new Promise((resolve) => worker.once("exit", resolve));
  expect([...said]).toEqual([null]);
});

it("names a link that leads nowhere", () => {
  const path = join(folder, "link");
  symlinkSync(join(folder, "missing"), path);
  expect(whyRefused(path)).toMatch(/^is a link that leads nowhere/);
});
