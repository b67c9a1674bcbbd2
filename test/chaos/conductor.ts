// The course of a chaos run: everybody works while faults come at times that follow from the seed; then faults stop, all
// workers must be busy again, and everything must come to its end within a bound.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { openStore } from "../../src/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { createDice } from "../simulation/dice.ts";
import { BusyWatch, type Longest } from "./busy.ts";
import { ownScribe } from "./file-scribe.ts";
import { attempt } from "./producer.ts";
import type { Scene } from "./scene.ts";
import { type Done, storm, type Wanted } from "./storm.ts";
import { sleep } from "./told.ts";
import { Troupe } from "./troupe.ts";

/** What to do. */
export interface Plan extends Wanted {
  readonly folder: string;
  readonly scene: Scene;
  readonly seed: number;
  readonly workers: number;
  readonly secondsLimit: number;
}

/** What was done. */
export interface Course {
  readonly done: Done;
  readonly workersKilled: number;
  readonly killedByJobs: number;
  /** The longest time from the end of a fault until every worker was busy again. */
  readonly busyAgain: Longest;
  /** What went wrong that is no matter of history. */
  readonly troubles: readonly string[];
}

const SUSPECT_PROGRAM = fileURLToPath(new URL("../../src/isolated-child.js", import.meta.url));
const PRODUCERS = 2;
/** After the faults of a burst, every worker must be busy again within this. */
const BUSY_MS = 30_000;
const HEAL_MS = 90_000;
const LEAVE_MS = 20_000;

/** Conducts a run; every actor has ended when it resolves or throws. */
export async function conduct(plan: Plan): Promise<Course> {
  const { scene, folder } = plan;
  const store = await openStore(scene.directUrl);
  const dice = createDice(plan.seed, "conductor");
  const watch = new BusyWatch(Array.from({ length: plan.workers }, (_, at) => `worker-${at + 1}`));
  const troupe = new Troupe(
    folder,
    ownScribe(),
    () => dice.between(0, 800),
    (name, busy) => watch.onBusy(name, busy),
  );
  const end = (): void => {
    troupe.close();
    const over = async (): Promise<boolean> => !troupe.actors.some(({ child }) => child) && !orphans(folder).length;
    void within(LEAVE_MS, over)
      .then(() => scene.close())
      .finally(() => process.exit(130));
  };
  process.once("SIGINT", end).once("SIGTERM", end);
  process.once("exit", () => troupe.close());
  try {
    await store.migrate();
    troupe.add("worker", plan.workers);
    troupe.add("producer", PRODUCERS);
    troupe.add("operator", 1);
    const until = Date.now() + plan.secondsLimit * 1_000;
    const onOver = (kind: string): void => {
      ownScribe().write("conductor", "mark", "ok", { answer: `over: one of the ${kind}` });
      watch.over(kind);
    };
    const troubles: string[] = [];
    const calm = async (): Promise<void> => void troubles.push(...(await busyAgain(watch)));
    const done = await storm({ wanted: plan, troupe, scene, dice, until, onOver, calm });
    troubles.push(...(await heal(troupe, store, folder)), ...troupe.accidents);
    const { workersKilled, killedByJobs } = troupe;
    return { done, workersKilled, killedByJobs, busyAgain: watch.longest, troubles };
  } finally {
    troupe.close();
    await store.close();
  }
}

/** Waits until every worker has taken work since the last fault; says who took too long. */
async function busyAgain(watch: BusyWatch): Promise<string[]> {
  await within(BUSY_MS, async () => watch.idle.length === 0);
  return watch.idle.map((worker) => `busy: ${worker} was not busy again ${BUSY_MS / 1_000} s after a fault`);
}

/** Lets everything come to its end; says what did not. */
async function heal(troupe: Troupe, store: Store, folder: string): Promise<string[]> {
  const troubles: string[] = [];
  troupe.calm = true;
  troupe.tell(["producer", "operator"]);
  const workers = troupe.actors.filter(({ role }) => role === "worker");
  const others = troupe.actors.filter(({ role }) => role !== "worker");
  if (!(await within(LEAVE_MS, async () => others.every(({ over }) => over)))) troubles.push("a producer did not end");
  const isDone = async (): Promise<boolean> => {
    const counts = await attempt(() => store.count());
    return counts !== null && counts.queued + counts.running === 0;
  };
  if (!(await within(HEAL_MS, isDone))) {
    troubles.push(`not everything had ended ${HEAL_MS / 1_000} s after the last fault`);
  }
  const left = async (): Promise<boolean> => {
    troupe.tell(["worker"]);
    return workers.every(({ over }) => over);
  };
  if (!(await within(LEAVE_MS, left))) troubles.push("a worker did not stop");
  if (!(await within(LEAVE_MS, async () => orphans(folder).length === 0))) {
    troubles.push("the child of a suspect did not end");
    for (const pid of orphans(folder)) process.kill(pid, "SIGKILL");
  }
  return troubles;
}

/** Children of suspects that are still there; they outlive a worker that is killed beside them. */
function orphans(folder: string): number[] {
  const pids = readdirSync(folder).flatMap((name) => /\.isolated-([0-9]+)-[0-9]+\.jsonl$/.exec(name)?.[1] ?? []);
  return pids.map(Number).filter((pid) => {
    try {
      // Its program lies in the folder of this run, so a stranger under the same pid is told apart.
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(SUSPECT_PROGRAM);
    } catch {
      return false;
    }
  });
}

/** True as soon as it is so, false when the time is up. */
async function within(ms: number, isSo: () => Promise<boolean>): Promise<boolean> {
  for (const until = Date.now() + ms; Date.now() < until; await sleep(100)) if (await isSo()) return true;
  return isSo();
}
