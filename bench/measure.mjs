// Small tools that every benchmark shares: new jobs, medians, scratch folders, and one way to print a row.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSqliteStore } from "../dist/store/sqlite/index.js";
import { realSystem } from "../dist/system/real.js";

/** A new job with a payload of about a hundred bytes. */
export function newJob(overrides = {}) {
  return {
    id: realSystem.jobId(),
    type: "bench",
    queue: "default",
    service: null,
    tenant: null,
    group: null,
    groupConcurrency: null,
    priority: 0,
    payload: `{"customer":"c-4711","url":"https://example.com/orders/123456","note":"${"x".repeat(30)}"}`,
    key: null,
    digest: null,
    version: 1,
    unique: "key",
    delayMs: 0,
    runAt: null,
    trace: null,
    maxAttempts: 10,
    maxCrashes: 3,
    deadlineMs: null,
    stuckMs: null,
    stuckRetryMs: null,
    stuckLimit: null,
    limited: true,
    keepFinishedMs: 86_400_000,
    keepDeadMs: 604_800_000,
    ...overrides,
  };
}

/** Enqueues many jobs in chunks. */
export async function fill(store, count, overrides) {
  for (let done = 0; done < count; done += 1_000) {
    const size = Math.min(1_000, count - done);
    await store.enqueue(Array.from({ length: size }, () => newJob(overrides)));
  }
}

/** Runs the work in a folder that is gone afterwards. */
export async function inScratch(work) {
  const folder = mkdtempSync(join(tmpdir(), "redrive-bench-"));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Opens a SQLite store for the time of the work. */
export async function withStore(path, work) {
  const store = createSqliteStore({ path });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** The middle value, and how far the others lie from it as a share. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted[sorted.length >> 1];
  return { middle, spread: middle === 0 ? 0 : (sorted.at(-1) - sorted[0]) / middle };
}

/** The value below which the given share of all values lies. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

/** Waits. */
export function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A rate with half its spread, as it stands in a row. */
export function rate({ middle, spread }) {
  return `${Math.round(middle)} ± ${Math.round(spread * 50)} %`;
}

/** Prints one measured row; `goal` is a sentence with its own verdict. */
export function row(name, figure, goal = "") {
  process.stdout.write(`${name.padEnd(58)} ${figure.padStart(24)}   ${goal}\n`);
}

/** "reached" or "MISSED", beside what was wanted. */
export function against(text, ok) {
  return `${ok ? "reached" : "MISSED"}: ${text}`;
}
