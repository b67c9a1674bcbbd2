// The operator interferes as people do: cancels, redrives, reschedules, pauses for a moment, and looks at dead letters.
import type { DeadLetter, Job, State } from "../../src/core/job.ts";
import type { Dice } from "../simulation/dice.ts";
import { hashText } from "../support/history/event.ts";
import type { Stage } from "./actor.ts";
import { ownScribe } from "./file-scribe.ts";
import { attempt } from "./producer.ts";
import { sleep } from "./told.ts";

type Action = (stage: Stage) => Promise<unknown>;

const QUEUES = ["default", "bulk"];
const PAUSE_MOST_MS = 500;

/** Interferes until it is calm, then ends every pause and sends the last dead ones back. */
export async function operate(stage: Stage): Promise<void> {
  const { store, dice, calm, ready } = stage;
  ready();
  while (!calm.aborted) {
    await sleep(dice.between(50, 500));
    await dice.pick(ACTIONS)(stage);
  }
  for (const name of QUEUES) await attempt(() => store.resume({ kind: "queue", name }));
}

const cancel: Action = async ({ store, dice }) => {
  const some = await pickJobs(store, dice, dice.pick(["queued", "running", "running", "completed"]));
  if (some.length > 0) await attempt(() => store.cancel(some.map(({ id }) => id)));
};

const reschedule: Action = async ({ store, dice }) => {
  const some = await pickJobs(store, dice, dice.pick(["queued", "queued", "running"]));
  const change = dice.chance(0.5) ? { delayMs: dice.between(0, 800) } : { priority: dice.between(0, 9) };
  // Only the store knows to the millisecond who of a group is due first then.
  const alone = some.filter(({ group }) => group === null);
  if (alone.length > 0) await attempt(() => store.reschedule(alone.map(({ id }) => ({ id, ...change }))));
};

/** Sends some dead ones back, and now and then the same ones again, as two impatient people would. */
const redrive: Action = async ({ store, dice }) => {
  const page = await attempt(() => store.deadLetters({ limit: 20, redriven: dice.chance(0.3) }));
  const letters = (page?.items ?? []).filter(worthIt);
  const requests = letters.map(({ job, generation }) => ({ id: job.id, generation, delayMs: dice.pick([0, 300]) }));
  if (requests.length === 0) return;
  for (let times = dice.pick([1, 1, 2]); times > 0; times--) await attempt(() => store.redrive(requests));
};

/** A killer is sent back once, and not every one, because it takes workers along each time. */
function worthIt({ job, generation, reason }: DeadLetter): boolean {
  return reason !== "crashed" || (generation === 1 && hashText(job.id) % 3 === 0);
}

const pause: Action = async ({ store, dice }) => {
  const target = { kind: "queue", name: dice.pick(QUEUES) } as const;
  await attempt(() => store.pause(target, { forMs: PAUSE_MOST_MS, reason: "chaos" }));
  await sleep(dice.between(50, PAUSE_MOST_MS));
  await attempt(() => store.resume(target));
};

const count: Action = ({ store }) => attempt(() => store.count());

/** A dead letter carries its job: seen at one moment, both must agree. */
const look: Action = async ({ store }) => {
  const scribe = ownScribe();
  const since = scribe.write(scribe.actor, "observe", "invoke", {});
  const page = await attempt(() => store.deadLetters({ limit: 50 }));
  for (const { job, generation: of } of page?.items ?? []) {
    const { id, state, generation, attempts, maxAttempts } = job;
    const line = { job: id, answer: state, generation, count: of === generation ? 1 : 2, attempts, maxAttempts };
    scribe.write(scribe.actor, "observe", "ok", line, since);
  }
};

const ACTIONS: readonly Action[] = [cancel, reschedule, reschedule, redrive, redrive, pause, count, look];

async function pickJobs(store: Stage["store"], dice: Dice, state: State): Promise<Job[]> {
  const page = await attempt(() => store.list({ limit: 50, state }));
  return (page?.items ?? []).filter(() => dice.chance(0.06));
}
