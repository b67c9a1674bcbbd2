// A redrive of very many letters: the process that drives it needs no more memory for many than for few. A worker in
// another process runs the jobs. `npm run prove -- redrives --only many` does it with 1,000,000.
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, inject, it, onTestFinished } from "vitest";
import type { openStore } from "../../src/open-store.ts";
import { builtModule, importBuilt } from "../support/built.ts";
import { type Bench, createBench } from "../support/cli.ts";
import { startCli } from "../support/cli-processes.ts";
import { newJob } from "../support/new-job.ts";
import { testSchema } from "../support/postgres-queue.ts";
import { signUp, take } from "../support/runs.ts";
import { dead, failure } from "../support/verdicts.ts";
import { settle } from "./worlds.ts";

const MANY = Number(process.env["REDRIVE_PROVE_MANY"] ?? 500);
const CHUNK = 1_000;
/** What the memory of the driver may grow by between a tenth and the end of the sends. */
const GROWTH_MOST = 32 * 1_024 * 1_024;
const DRIVER = fileURLToPath(new URL("../support/redrive-many.mjs", import.meta.url));
const JOBS = `
import { defineJob } from "redrive";
export const charge = defineJob("charge", { run: () => undefined });
`;

/** What the driver tells. */
interface Told {
  readonly planned?: number;
  readonly started?: string;
  readonly share?: number;
  readonly ms?: number;
  readonly rss?: number;
  readonly heapUsed?: number;
  readonly state?: string;
  readonly counts?: object;
}

/** Fills a store with letters of one type and cause. */
async function fill(address: string): Promise<void> {
  const library = await importBuilt<{ openStore: typeof openStore }>("open-store.js");
  const store = await library.openStore(address);
  try {
    await store.migrate();
    const worker = await signUp(store, 86_400_000);
    for (let made = 0; made < MANY; made += CHUNK) {
      const size = Math.min(CHUNK, MANY - made);
      await store.enqueue(Array.from({ length: size }, () => newJob({ type: "charge" })));
      await settle(store, await take(store, worker, { limit: size }), () => dead({ failure: failure() }));
    }
    await store.leave(worker);
  } finally {
    await store.close();
  }
}

/** Drives the run in a process of its own, beside a worker in another; answers what the driver told. */
async function drive(bench: Bench, address: string): Promise<readonly Told[]> {
  const driver = fork(DRIVER, [builtModule("index.js"), address, "charge", "10000"], { execArgv: ["--expose-gc"] });
  onTestFinished(() => void driver.kill("SIGKILL"));
  const told: Told[] = [];
  let worker: ReturnType<typeof startCli> | null = null;
  driver.on("message", (message: Told) => {
    told.push(message);
    // Not before the run has its driver: a worker would drive it, too.
    if (message.share === 0)
      worker = startCli(bench, ["worker", "--jobs", "jobs.ts", "--store", address, "--concurrency", "200", "--quiet"]);
  });
  await once(driver, "exit");
  (worker as ReturnType<typeof startCli> | null)?.child.kill("SIGTERM");
  return told;
}

const megabytes = (bytes = 0): string => `${(bytes / 1_048_576).toFixed(1)} MB`;

it.each<[string, (bench: Bench) => string]>([
  ["sqlite", ({ folder }) => `sqlite:${join(folder, "jobs.db")}`],
  ["postgres 18", () => testSchema(inject("postgres18")).url],
])(
  `sends ${MANY} letters in flat memory, on %s`,
  async (name, addressIn) => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS);
    const address = addressIn(bench);
    await fill(address);
    const told = await drive(bench, address);
    const of = (field: keyof Told): Told | undefined => told.find((each) => each[field] !== undefined);
    const [planned, started, ended] = [of("planned"), of("started"), of("state")];
    const shares = told.filter(({ share }) => share !== undefined);
    const memory = shares.map(
      ({ share = 0, rss, heapUsed }) => `${share * 100} % ${megabytes(rss)} (${megabytes(heapUsed)})`,
    );
    console.log(
      `${name}: ${MANY} letters: plan ${planned?.ms?.toFixed(0)} ms, start ${started?.ms?.toFixed(0)} ms; memory (heap) at ${memory.join(", ")}`,
    );
    expect(planned?.planned).toBe(MANY);
    expect(ended).toMatchObject({ state: "completed", counts: { sent: MANY, completed: MANY, left: 0 } });
    expect(shares.map(({ share }) => share)).toEqual([0, 0.1, 0.5, 1]);
    const [, tenth, , end] = shares;
    expect((end?.heapUsed ?? 0) - (tenth?.heapUsed ?? 0)).toBeLessThan(GROWTH_MOST);
  },
  120_000 + MANY * 2,
);
