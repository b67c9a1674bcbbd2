// An incident from its first dead letter to its last job, with the command line and real workers: a redrive while the bug
// is still there stops at its first step, and one after the fix sends every letter, at its rate and in order inside groups.
// `npm run prove -- redrives` does it with 10,000 letters.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, it, onTestFinished } from "vitest";
import type { DeadLetter } from "../../src/core/job.ts";
import type { createRedrive, defineJob, Redrive } from "../../src/index.ts";
import { everyItem } from "../../src/enqueue/paging.ts";
import type { LetterFilter } from "../../src/store/dead-letters.ts";
import { importBuilt } from "../support/built.ts";
import { type Bench, createBench, type Document } from "../support/cli.ts";
import { type Running, startCli } from "../support/cli-processes.ts";
import { testSchema } from "../support/postgres-queue.ts";

const LETTERS = Number(process.env["REDRIVE_PROVE_LETTERS"] ?? 120);
const GROUPS = Math.min(200, LETTERS / 10);
const RATE = Math.max(60, LETTERS / 10);
const FIRST_STEP = 5;
const NUMBERS = Array.from({ length: LETTERS }, (_, n) => n);
const groupOf = (n: number): string => `g${n % GROUPS}`;
const noteOf = (n: number): string => `${groupOf(n)} ${n}`;

/** Each run is noted in a file, in order inside a group, because jobs of a group run one at a time. */
const JOBS = `
import { appendFileSync, existsSync } from "node:fs";
import { defineJob } from "redrive";
const here = (name) => new URL(name, import.meta.url);
export const charge = defineJob("charge", {
  maxAttempts: 1,
  async run({ n }, { job }) {
    appendFileSync(here("runs"), \`\${job.group} \${n}\\n\`);
    if (existsSync(here("mended"))) return;
    if (existsSync(here("slow"))) await new Promise((resolve) => setTimeout(resolve, 1_000));
    throw new Error("card declined");
  },
});
`;

/** A store whose letters have all died of one cause, and what was done to it. */
interface Scene {
  readonly bench: Bench;
  readonly redrive: Redrive;
  readonly place: readonly string[];
  /** What the workers have run since the last look. */
  readonly runs: () => readonly string[];
  /** Plans all letters of the cause, starts them, and follows the run to its end. */
  readonly redriveAll: () => Promise<Called>;
}

interface Called {
  readonly code: number | null;
  readonly document: Document;
}

/** Starts a plan in a process of its own, and follows it to its end. */
async function startAndFollow(bench: Bench, plan: string, place: readonly string[]): Promise<Called> {
  const called = startCli(bench, ["start", plan, "--follow", "--rate", String(RATE), ...place, "--json"]);
  const { code } = await called.ended;
  expect(called.text.out, called.text.err).not.toBe("");
  return { code, document: JSON.parse(called.text.out) };
}

async function scene(bench: Bench, store: string): Promise<Scene> {
  bench.write("jobs.ts", JOBS);
  const place = ["--store", store];
  const library = await importBuilt<{ createRedrive: typeof createRedrive; defineJob: typeof defineJob }>("index.js");
  const charge = library.defineJob("charge", { maxAttempts: 1, run: ({ n }: { n: number }) => n });
  const redrive = await library.createRedrive({ store, jobs: [charge], log: "silent" });
  onTestFinished(() => redrive.close());
  const inputs = NUMBERS.map((n) => ({ n }));
  await redrive.enqueueMany(charge, inputs, { each: ({ n }) => ({ group: groupOf(n) }) });
  await bench.run(["drain", "--jobs", "jobs.ts", ...place, "--concurrency", "200", "--quiet"]);
  const causes = await bench.json(["dlq", "causes", ...place]);
  expect(causes.document.items).toMatchObject([{ dead: LETTERS, types: ["charge"] }]);
  let seen = 0;
  return {
    bench,
    redrive,
    place,
    runs() {
      const lines = readFileSync(join(bench.folder, "runs"), "utf8").split("\n").filter(Boolean);
      return lines.slice(seen, (seen = lines.length));
    },
    async redriveAll() {
      const planned = await bench.json(["plan", "--cause", causes.document.items[0].fingerprint, ...place]);
      expect(planned.document).toMatchObject({ count: LETTERS, toSend: LETTERS });
      return startAndFollow(bench, planned.document.id, place);
    },
  };
}

function startWorker({ bench, place }: Scene, concurrency: number): Running {
  return startCli(bench, ["worker", "--jobs", "jobs.ts", ...place, "--concurrency", String(concurrency)]);
}

async function stopWorkers(...workers: readonly Running[]): Promise<void> {
  for (const { child } of workers) child.kill("SIGTERM");
  await Promise.all(workers.map(({ ended }) => ended));
}

/** All letters that match. */
async function lettersOf({ redrive }: Scene, query: LetterFilter): Promise<DeadLetter[]> {
  const found: DeadLetter[] = [];
  const page = { ...query, sort: "enqueued", payloads: false, limit: 200 } as const;
  for await (const letter of everyItem((cursor) => redrive.store.deadLetters({ ...page, cursor }))) found.push(letter);
  return found;
}

/** The most of these times that lie within one second, wherever it begins. */
function mostInASecond(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  let [most, from] = [0, 0];
  for (const [at, time] of sorted.entries()) {
    while (time - (sorted[from] as number) >= 1_000) from += 1;
    most = Math.max(most, at - from + 1);
  }
  return most;
}

async function redriveTooSoon(name: string, incident: Scene): Promise<void> {
  const { bench, place, runs, redriveAll } = incident;
  // Slow enough that jobs of the step wait while the first one fails.
  bench.write("slow", "");
  const worker = startWorker(incident, 1);
  const ended = await redriveAll();
  // What the worker had taken by then still runs.
  const show = async (): Promise<Document> =>
    (await bench.json(["redrives", "show", ended.document.id, ...place])).document;
  await expect.poll(async () => (await show()).pending).toBe(0);
  await stopWorkers(worker);
  expect(ended).toMatchObject({ code: 4, document: { state: "stopped", completed: 0 } });
  const ran = runs().length;
  const run = await show();
  console.log(`${name}: bug still there: ${run.sent} of ${LETTERS} sent, ${ran} ran, ${run.recalled} recalled, exit 4`);
  expect(run).toMatchObject({ state: "stopped", completed: 0, failed: ran, pending: 0, left: LETTERS - run.sent });
  expect(run.sent).toBeLessThanOrEqual(FIRST_STEP);
  expect(ran + run.recalled).toBe(run.sent);
  const dead = await lettersOf(incident, {});
  expect(dead.length).toBe(LETTERS);
  expect(dead.filter(({ job }) => job.generation === 1).length).toBe(LETTERS - run.sent);
}

async function redriveFixed(name: string, incident: Scene): Promise<void> {
  const { bench, runs, redriveAll } = incident;
  bench.write("mended", "");
  const workers = [startWorker(incident, 50), startWorker(incident, 50)];
  const { code, document: run } = await redriveAll();
  await stopWorkers(...workers);
  expect(code).toBe(0);
  expect(run).toMatchObject({ state: "completed", sent: LETTERS, completed: LETTERS, failed: 0, left: 0 });
  const ran = runs();
  const byGroup = Array.from({ length: GROUPS }, (_, g) => ran.filter((line) => line.startsWith(`g${g} `)));
  const enqueued = Array.from({ length: GROUPS }, (_, g) => NUMBERS.filter((n) => n % GROUPS === g).map(noteOf));
  expect(byGroup).toEqual(enqueued);
  const times = (await lettersOf(incident, { redrive: run.id })).map(({ redrivenAt }) => redrivenAt as number);
  expect(times.length).toBe(LETTERS);
  const most = mostInASecond(times);
  const seconds = (Math.max(...times) - Math.min(...times)) / 1_000;
  console.log(
    `${name}: bug fixed: ${run.completed} of ${LETTERS} completed, in order in ${GROUPS} groups; sent in ${seconds.toFixed(1)} s, at most ${most} in any second at a rate of ${RATE}`,
  );
  expect(most).toBeLessThanOrEqual(RATE);
}

it.each<[string, (bench: Bench) => string]>([
  ["sqlite", ({ folder }) => `sqlite:${join(folder, "jobs.db")}`],
  ["postgres 18", () => testSchema(inject("postgres18")).url],
])(
  `stops ${LETTERS} letters at the first step while the bug is there, and sends all once it is fixed, on %s`,
  async (name, addressIn) => {
    const bench = createBench();
    const incident = await scene(bench, addressIn(bench));
    expect(incident.runs().length).toBe(LETTERS);
    await redriveTooSoon(name, incident);
    await redriveFixed(name, incident);
  },
  120_000 + LETTERS * 60,
);
