// Commands that are kept from batch to batch: one that is about to end gets no batch, and one that ended in good order
// before it said anything of a batch is to blame for none of it.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { BatchContext, BatchItem, RunBatch } from "../../src/jobs/batch-handler.ts";
import { subprocess } from "../../src/jobs/subprocess.ts";

const folder = mkdtempSync(join(tmpdir(), "redrive-kept-"));
afterAll(() => rmSync(folder, { recursive: true }));
// The time after which a kept command is ended passes when a test says so; commands live in real time.
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

/** A command that is kept and answers each item with its own process id, after these lines. */
function command(name: string, ...lines: string[]): RunBatch {
  const file = join(folder, `${name}.mjs`);
  const head = [
    `import { createInterface } from "node:readline";`,
    `const say = (word) => process.stdout.write(JSON.stringify(word) + "\\n");`,
    `let items = []; let batches = 0;`,
    `const answer = () => { for (const { id } of items.splice(0)) say({ id, status: "done", result: process.pid }); say({ end: true }); };`,
    // It is a while in ending: its stdin is closed by then, and whatever it was given is lost.
    `const linger = () => setTimeout(() => process.exit(0), 300);`,
    `let onBatch = answer;`,
  ];
  const tail = [
    `createInterface({ input: process.stdin })`,
    `  .on("line", (line) => { if (line) items.push(JSON.parse(line)); else { batches += 1; onBatch(); } });`,
  ];
  writeFileSync(file, [...head, ...lines, ...tail].join("\n"));
  return subprocess({ command: [process.execPath, file], contract: "lines", keepAlive: true, timeout: "60s" });
}

let ids = 0;

/** Gives the command a batch of one; answers the process that did it. */
async function batch(run: RunBatch, more: Partial<BatchContext> = {}): Promise<unknown> {
  let by: unknown = null;
  const item = { id: `item-${++ids}`, input: 1, attempt: 1 } as BatchItem;
  const done = (_: string, result: unknown): void => void (by = result);
  const context = { signal: new AbortController().signal, started: () => {}, done, ...more };
  await run([item], context as unknown as BatchContext);
  return by;
}

describe("a kept command", () => {
  it("gets the next batch", async () => {
    const run = command("steady");
    const first = await batch(run);
    expect(first).toBeTypeOf("number");
    expect(await batch(run)).toBe(first);
  });

  it("that is being ended because it had nothing to do gets no batch", async () => {
    const run = command("idle", `process.on("SIGTERM", linger);`);
    const first = await batch(run);
    vi.advanceTimersByTime(10_000);
    const second = await batch(run);
    expect(second).toBeTypeOf("number");
    expect(second).not.toBe(first);
  });

  it("that is being ended for that reason and ends badly is to blame for no batch", async () => {
    const run = command("idle-broken", `process.on("SIGTERM", () => setTimeout(() => process.exit(1), 300));`);
    const first = await batch(run);
    vi.advanceTimersByTime(10_000);
    const second = await batch(run);
    expect(second).toBeTypeOf("number");
    expect(second).not.toBe(first);
  });

  it("that was asked to stop and answered all the same gets no other batch", async () => {
    const run = command(
      "asked",
      `onBatch = () => { for (const { id } of items) say({ id, status: "started" }); };`,
      `process.on("SIGTERM", () => { answer(); linger(); });`,
    );
    const stopped = async (): Promise<unknown> => {
      const asked = new AbortController();
      return batch(run, { signal: asked.signal, started: () => asked.abort() });
    };
    const first = await stopped();
    expect(first).toBeTypeOf("number");
    const second = await stopped();
    expect(second).toBeTypeOf("number");
    expect(second).not.toBe(first);
  });

  it("that ends in good order without a word about a batch leaves it to a new one", async () => {
    const run = command("tired", `onBatch = () => (batches > 1 ? process.exit(0) : answer());`);
    const by = [await batch(run), await batch(run), await batch(run)];
    expect(by.every((pid) => typeof pid === "number")).toBe(true);
    expect(new Set(by).size).toBe(3);
  });

  it("that fails without a word about a batch is told of, as a new one is", async () => {
    const run = command("broken", `onBatch = () => (batches > 1 ? process.exit(3) : answer());`);
    await batch(run);
    await expect(batch(run)).rejects.toMatchObject({ name: "ExitCode", code: "3" });
  });

  it("that is new and ends in good order without a word is told of", async () => {
    const run = command("silent", `onBatch = () => process.exit(0);`);
    await expect(batch(run)).rejects.toMatchObject({ name: "NoOutcome" });
  });
});
