// One job among a thousand kills its process whenever it runs; four worker processes with ten slots each are started
// again whenever they die. Only the killer may die, and it may take no more processes along than its budget allows.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { against, inScratch, newJob, row, sleep, withStore } from "../measure.mjs";

const program = fileURLToPath(new URL("../actors/among-killers.mjs", import.meta.url));
const PROCESSES = 4;
const CRASH_BUDGET = 3;
const PATIENCE_MS = 60_000;

/** Keeps worker processes running; `deaths` counts those that ended unasked. */
function supervise(task) {
  const children = new Set();
  let ending = false;
  const group = {
    deaths: 0,
    async stop() {
      ending = true;
      const closed = [...children].map((child) => new Promise((resolve) => child.once("close", resolve)));
      for (const child of children) child.kill("SIGTERM");
      const force = setTimeout(() => [...children].map((child) => child.kill("SIGKILL")), 10_000);
      await Promise.all(closed);
      clearTimeout(force);
    },
  };
  const start = () => {
    const child = spawn(process.execPath, [program, JSON.stringify(task)], { stdio: ["ignore", "ignore", "inherit"] });
    children.add(child);
    child.once("close", () => {
      children.delete(child);
      if (ending) return;
      group.deaths += 1;
      if (group.deaths < 20) start();
    });
  };
  for (let number = 0; number < PROCESSES; number++) start();
  return group;
}

/** Rows about one killer among many. */
export async function killer({ short }) {
  const count = short ? 200 : 1_000;
  const jobs = Array.from({ length: count }, (_, at) =>
    newJob({ type: "deadly", maxCrashes: CRASH_BUDGET, payload: JSON.stringify({ kill: at === 117 }) }),
  );
  await inScratch(async (folder) => {
    const path = join(folder, "bench.db");
    await withStore(path, async (store) => {
      await store.enqueue(jobs);
      const group = supervise({ path, concurrency: 10, lease: "3s", heartbeat: "500ms" });
      const began = performance.now();
      let counts = await store.count();
      while (counts.queued + counts.running > 0 && performance.now() - began < PATIENCE_MS) {
        await sleep(250);
        counts = await store.count();
      }
      const seconds = (performance.now() - began) / 1000;
      const { deaths } = group;
      await group.stop();
      const dead = (await store.deadLetters({ limit: 10 })).items.map(({ job }) => job.id);
      const others = dead.filter((id) => id !== jobs[117].id).length;
      const figure = `${counts.completed} done, ${others} bystanders dead`;
      const ok = counts.completed === count - 1 && dead.length === 1 && others === 0;
      row(`one killer among ${count}, ${PROCESSES} processes × 10`, figure, against(`${count - 1} done, 0 dead`, ok));
      const few = deaths <= CRASH_BUDGET + 1;
      row("  processes that died", `${deaths} in ${seconds.toFixed(1)} s`, against(`≤ ${CRASH_BUDGET + 1}`, few));
    });
  });
}
