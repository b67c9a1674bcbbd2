// The course of a chaos run: everybody works while processes are killed, halted beyond their lease and started again, at
// times that follow from the seed; then faults stop, and everything must come to its end within a bound.
import { readdirSync, readFileSync } from "node:fs";
import { openStore } from "../../src/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { createDice, type Dice } from "../simulation/dice.ts";
import { ownScribe } from "./file-scribe.ts";
import { attempt } from "./producer.ts";
import { sleep, storeUrl } from "./told.ts";
import { type Actor, Troupe } from "./troupe.ts";
import { LEASE_MS } from "./work.ts";

/** What to do. */
export interface Plan {
  readonly folder: string;
  readonly seed: number;
  readonly kills: number;
  readonly pauses: number;
  readonly workers: number;
  readonly secondsLimit: number;
}

/** What was done. */
export interface Course {
  readonly kills: number;
  readonly pauses: number;
  readonly killedByJobs: number;
  /** What went wrong that is no matter of history. */
  readonly troubles: readonly string[];
}

const PRODUCERS = 2;
const HEAL_MS = 90_000;
const LEAVE_MS = 20_000;

/** Conducts a run; every actor has ended when it resolves or throws. */
export async function conduct(plan: Plan): Promise<Course> {
  const store = openStore(storeUrl(plan.folder));
  const dice = createDice(plan.seed, "conductor");
  const troupe = new Troupe(plan.folder, ownScribe(), () => dice.between(0, 800));
  const end = (): void => {
    troupe.close();
    const over = async (): Promise<boolean> =>
      !troupe.actors.some(({ child }) => child) && !orphans(plan.folder).length;
    void within(LEAVE_MS, over).finally(() => process.exit(130));
  };
  process.once("SIGINT", end).once("SIGTERM", end);
  process.once("exit", () => troupe.close());
  try {
    await store.migrate();
    troupe.add("worker", plan.workers);
    troupe.add("producer", PRODUCERS);
    troupe.add("operator", 1);
    const done = await storm(plan, troupe, dice);
    const troubles = await heal(troupe, store, plan.folder);
    return { ...done, killedByJobs: troupe.killedByJobs, troubles: [...troubles, ...troupe.accidents] };
  } finally {
    troupe.close();
    await store.close();
  }
}

/** Faults until there were enough of them, or the time is up. */
async function storm(
  plan: Plan,
  troupe: Troupe,
  dice: Dice,
): Promise<{ readonly kills: number; readonly pauses: number }> {
  const until = Date.now() + plan.secondsLimit * 1_000;
  const done = { kills: 0, pauses: 0 };
  const halted = new Set<Promise<void>>();
  while ((done.kills < plan.kills || done.pauses < plan.pauses) && Date.now() < until) {
    await sleep(dice.between(100, 1_400));
    const killsLeft = plan.kills - done.kills;
    const pausesLeft = plan.pauses - done.pauses - halted.size;
    if (pausesLeft > 0 && dice.random() * (killsLeft + pausesLeft) < pausesLeft) {
      const victim = pauseVictim(troupe, dice);
      if (victim === null) continue;
      const over = halt(troupe, victim, dice).then((went) => {
        if (went) done.pauses += 1;
        halted.delete(over);
      });
      halted.add(over);
    } else if (killsLeft > 0) {
      const victim = killVictim(troupe, dice);
      if (victim !== null && troupe.kill(victim)) done.kills += 1;
    }
  }
  await Promise.all(halted);
  return done;
}

/** Mostly those at work; sometimes one that is only starting, or one that is halted. */
function killVictim(troupe: Troupe, dice: Dice): Actor | null {
  const mortal = troupe.actors.filter(({ child, role, doomed }) => child !== null && !doomed && role !== "operator");
  const likely = mortal.filter(({ ready, halted }) => (ready && !halted) || dice.chance(0.1));
  // Somebody must be left to take over, or the time until that happens says nothing.
  const role = dice.chance(0.8) && awake(troupe).length > 1 ? "worker" : "producer";
  const chosen = likely.filter((actor) => actor.role === role);
  return chosen.length === 0 ? null : dice.pick(chosen);
}

/** A worker, as long as half of them stay awake. */
function pauseVictim(troupe: Troupe, dice: Dice): Actor | null {
  const some = awake(troupe);
  const all = troupe.actors.filter(({ role }) => role === "worker").length;
  return some.length * 2 <= all ? null : dice.pick(some);
}

function awake(troupe: Troupe): Actor[] {
  return troupe.up("worker").filter(({ halted, doomed }) => !halted && !doomed);
}

async function halt(troupe: Troupe, actor: Actor, dice: Dice): Promise<boolean> {
  const { life } = actor;
  const forMs = LEASE_MS + dice.between(400, 2_500);
  if (!troupe.halt(actor)) return false;
  await sleep(forMs);
  return troupe.goOn(actor, life);
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
      // Its arguments name the store, so a stranger under the same pid is told apart.
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(folder);
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
