// Operators of redrive runs: they plan and start them, pause, resume, cancel and recall them, and edit payloads of dead jobs
// while workers drive. When the storm is over they see to it that every run comes to its end.
import { isRedriveError } from "../../src/core/errors.ts";
import { isDriven, isOpenRun } from "../../src/core/recovery/run.ts";
import { openRedrives, type Redrives } from "../../src/operate/redrives.ts";
import { openEventLog } from "../../src/report/event-log.ts";
import { NO_LIMITS } from "../../src/services/holding.ts";
import { payloadHash } from "../../src/store/payloads.ts";
import type { Store } from "../../src/store/store.ts";
import type { Log } from "../../src/system/log.ts";
import { attempt, NAMES, type Scene } from "./scene.ts";
import type { Actor } from "./world.ts";

const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
/** How long a run may go on in the calm before it is ended. */
const PATIENCE_MS = 15_000;

/** Handles runs until the storm is over, then waits for their end. */
export async function direct(actor: Actor, store: Store, scene: Scene): Promise<void> {
  const { dice, system } = actor;
  let isDone = false;
  scene.busy++;
  actor.onEnd(() => {
    if (!isDone) scene.busy--;
  });
  const eventLog = openEventLog({ store, log: SILENT, actor: actor.name });
  const runs = openRedrives({ store, system, log: SILENT, eventLog, actor: actor.name, jobs: [], limits: NO_LIMITS });
  while (scene.world.now < scene.calmAt) {
    await system.sleep(dice.between(50, 600));
    await allowed(() => dice.pick(ACTIONS)(runs, actor, store));
  }
  for (let from = scene.world.now; !(await isOver(runs, scene.world.now - from > PATIENCE_MS)); )
    await system.sleep(500);
  isDone = true;
  scene.busy--;
}

/** Does something that may be refused, or get no answer. */
async function allowed<T>(act: () => Promise<T>): Promise<T | null> {
  try {
    return await act();
  } catch (error) {
    if (isRedriveError(error)) return null;
    throw error;
  }
}

type Action = (runs: Redrives, actor: Actor, store: Store) => Promise<unknown>;

const start: Action = async (runs, { dice }) => {
  const plan = await runs.plan({ type: dice.pick(NAMES.types) });
  if (plan.count === 0) return;
  const canary = dice.pick<"none" | number[]>(["none", "none", [1], [1, 3]]);
  await runs.start(plan.id, {
    canary,
    rate: dice.pick([5, 20, 100]),
    tolerate: dice.pick([0, 50]),
    alongside: dice.chance(0.3),
  });
};

const change =
  (name: "pause" | "resume" | "cancel" | "recall"): Action =>
  async (runs, { dice }) => {
    const { items } = await runs.list();
    const open = items.filter(isOpenRun);
    if (open.length > 0) await runs[name](dice.pick(open).id);
  };

/** Gives a dead job another payload, or its first one again. */
const edit: Action = async (_runs, { dice, name }, store) => {
  const page = await attempt(() => store.deadLetters({ limit: dice.between(1, 5) }));
  const letter = page?.items.at(-1);
  if (!letter) return;
  const { id, payload: before, generation } = letter.job;
  const [first] = dice.chance(0.4) ? ((await attempt(() => store.payloads(id))) ?? []) : [];
  const payload = first?.payload ?? JSON.stringify({ body: dice.hex(12) });
  const was = payloadHash(dice.chance(0.1) ? `${before} ` : before);
  await attempt(() => store.repair([{ id, generation, was, payload, actor: name, why: null }]));
};

const ACTIONS: readonly Action[] = [
  start,
  start,
  start,
  start,
  change("pause"),
  change("pause"),
  change("resume"),
  change("resume"),
  change("cancel"),
  change("recall"),
  edit,
  edit,
];

/** True where no run is left to drive; resumes those that are paused, and ends those that take too long. */
async function isOver(runs: Redrives, isLate: boolean): Promise<boolean> {
  const page = await allowed(() => runs.list());
  if (!page) return false;
  for (const run of page.items.filter(isOpenRun))
    if (isLate) await allowed(() => runs.recall(run.id));
    else if (run.state === "paused") await allowed(() => runs.resume(run.id));
  return !page.items.some((run) => isOpenRun(run) || isDriven(run));
}
