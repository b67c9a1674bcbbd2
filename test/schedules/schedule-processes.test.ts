// Schedules kept by real workers, of which one is killed: one job per tick in the books.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeFileSync } from "node:fs";
import { expect, inject, it, onTestFinished } from "vitest";
import type { Redrive } from "../../src/index.ts";
import { importBuilt } from "../support/built.ts";
import { testFolder } from "../support/database-file.ts";
import { testSchema } from "../support/postgres-queue.ts";
import { booked } from "./schedule-fleet.ts";

const CLI = fileURLToPath(new URL("../../bin/redrive.js", import.meta.url));
const JOBS = `
import { defineJob } from "redrive";
export const tick = defineJob("tick", { run: (_, { job }) => job.key });
`;

function startWorker(folder: string, store: string): ChildProcess {
  const args = ["worker", "--jobs", "jobs.mjs", "--store", store, "--lease", "3s", "--heartbeat", "500ms"];
  const child = spawn(process.execPath, [CLI, ...args], { cwd: folder, stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

async function completed(redrive: Redrive, count: number): Promise<void> {
  await expect
    .poll(async () => (await redrive.jobs.count()).completed, { timeout: 60_000 })
    .toBeGreaterThanOrEqual(count);
}

it.each<[string, (folder: string) => string]>([
  ["sqlite", (folder) => `sqlite:${join(folder, "jobs.db")}`],
  ["postgres", () => testSchema(inject("postgres18")).url],
])("two workers on %s, one of them killed, make one job per tick", { timeout: 180_000 }, async (_name, place) => {
  const folder = testFolder();
  writeFileSync(join(folder, "jobs.mjs"), JOBS);
  const store = place(folder);
  const { createRedrive } = await importBuilt<typeof import("../../src/index.ts")>("index.js");
  const redrive = await createRedrive({ store, log: "silent" });
  onTestFinished(() => redrive.close());
  await redrive.schedules.set("s", { cron: "* * * * * *", job: "tick", catchUp: { all: 1_000 } });
  const [first, second] = [startWorker(folder, store), startWorker(folder, store)];
  await completed(redrive, 4);
  first.kill("SIGKILL");
  const { completed: before } = await redrive.jobs.count();
  await completed(redrive, before + 5);
  second.kill("SIGTERM");
  await once(second, "exit");
  await redrive.schedules.pause("s");
  const jobs = await booked(redrive.store);
  const ticks = jobs.map(({ key }) => Date.parse((key as string).slice("schedule:s:".length)));
  expect(ticks.length).toBeGreaterThanOrEqual(9);
  expect(ticks).toEqual(ticks.map((_tick, n) => (ticks[0] as number) + n * 1_000));
  expect(jobs.filter(({ state }) => state === "completed").map(({ result, key }) => [result, key])).toEqual(
    jobs.filter(({ state }) => state === "completed").map(({ key }) => [JSON.stringify(key), key]),
  );
});
