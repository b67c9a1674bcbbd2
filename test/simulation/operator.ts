// Operators and observers: they cancel, redrive, recall, reschedule, pause and remove while the storm lasts, and compare what
// they see of jobs, dead letters and counts.
import type { Store } from "../../src/store/store.ts";
import { attempt, NAMES, persist, type Scene } from "./scene.ts";
import type { Actor } from "./world.ts";

/** Interferes until the storm is over, then ends every pause. */
export async function operate(actor: Actor, store: Store, scene: Scene): Promise<void> {
  const { dice, system } = actor;
  while (scene.world.now < scene.calmAt) {
    await system.sleep(dice.between(100, 1200));
    if (scene.known.length > 0) await dice.pick(ACTIONS)(actor, store, scene);
  }
  for (const name of NAMES.queues) await persist(actor, () => store.resume({ kind: "queue", name }));
  for (const name of NAMES.types) await persist(actor, () => store.resume({ kind: "type", name }));
}

/** The redrive run of all operators. */
export const RUN = "r_sim";

type Action = (actor: Actor, store: Store, scene: Scene) => Promise<unknown>;

const cancel: Action = ({ dice }, store, scene) =>
  attempt(() => store.cancel([dice.pick(scene.known), ...(dice.chance(0.3) ? [dice.pick(scene.known)] : [])]));

const reschedule: Action = ({ dice }, store, scene) => {
  const change = dice.chance(0.5) ? { delayMs: dice.between(0, 1500) } : { priority: dice.between(0, 9) };
  return attempt(() => store.reschedule([{ id: dice.pick(scene.known), ...change }]));
};

/** Sends some dead letters back, and now and then the same ones again, as two impatient people would. */
const redrive: Action = async ({ dice }, store) => {
  const page = await attempt(() => store.deadLetters({ limit: dice.between(1, 10), redriven: dice.chance(0.4) }));
  if (page === null || page.items.length === 0) return;
  const delayMs = dice.pick([0, 0, 400]);
  const requests = page.items.map(({ job, generation }) => ({ id: job.id, generation, delayMs, redrive: RUN }));
  for (let times = dice.pick([1, 1, 2]); times > 0; times--) await attempt(() => store.redrive(requests));
};

/** Takes back some of what was sent: what no worker has taken, and now and then what one has. */
const recall: Action = async ({ dice }, store) => {
  const which = dice.chance(0.7) ? { outcome: "none" as const } : { redriven: true };
  const page = await attempt(() => store.deadLetters({ limit: dice.between(1, 10), ...which }));
  const targets = (page?.items ?? []).map(({ job, generation }) => ({ id: job.id, generation }));
  if (targets.length > 0) await attempt(() => store.recall(targets));
};

const pause: Action = async ({ dice, system }, store) => {
  const target = dice.chance(0.5)
    ? { kind: "queue" as const, name: dice.pick(NAMES.queues) }
    : { kind: "type" as const, name: dice.pick(NAMES.types) };
  await attempt(() => store.pause(target, { forMs: dice.pick([null, 700]), reason: "simulated" }));
  await system.sleep(dice.between(100, 1500));
  await attempt(() => store.resume(target));
};

const remove: Action = async ({ dice }, store, { confirmed }) => {
  if (confirmed.length > 0) await attempt(() => store.remove([dice.pick(confirmed)]));
};

const ACTIONS: readonly Action[] = [cancel, cancel, reschedule, redrive, redrive, redrive, recall, pause, remove];

/** Looks at jobs and counts, and writes down what it saw. */
export async function observe(actor: Actor, store: Store, scene: Scene): Promise<void> {
  const { dice, system } = actor;
  for (;;) {
    await system.sleep(dice.between(150, 900));
    const look = dice.pick([lookAtJob, lookAtJob, lookAtLetters, lookAtCounts]);
    await look(actor, store, scene);
  }
}

const lookAtCounts: Action = (_actor, store) => attempt(() => store.count());

/** A dead letter carries its job: seen at one moment, both must agree. */
const lookAtLetters: Action = async (actor, store, { scribe }) => {
  const since = scribe.write(actor.name, "observe", "invoke", {});
  const page = await attempt(() => store.deadLetters({ limit: 20, redriven: actor.dice.chance(0.5) }));
  for (const letter of page?.items ?? []) {
    const { id, state, generation, attempts, maxAttempts } = letter.job;
    const open = letter.redrivenAt === null;
    if (!open && letter.generation === generation) {
      scribe.write(actor.name, "observe", "ok", { job: id, answer: state, generation, count: 0 }, since);
    }
    if (!open) continue;
    const count = letter.generation === generation ? 1 : 2;
    scribe.write(
      actor.name,
      "observe",
      "ok",
      { job: id, answer: state, generation, count, attempts, maxAttempts },
      since,
    );
  }
};

/** A job that was dead at the first look must have its letter at the second, unless it was purged in between. */
const lookAtJob: Action = async (actor, store, { scribe, known }) => {
  if (known.length === 0) return;
  const id = actor.dice.pick(known);
  const since = scribe.write(actor.name, "observe", "invoke", { job: id });
  const [job] = (await attempt(() => store.get([id]))) ?? [undefined];
  if (job === undefined) return;
  if (job === null) return scribe.write(actor.name, "observe", "ok", { job: id, answer: "missing" }, since);
  const { state, generation, attempts, maxAttempts } = job;
  let count = -1;
  if (state === "dead") {
    const page = await attempt(() => store.deadLetters({ limit: 100, jobId: id, redriven: true }));
    const [still] = (await attempt(() => store.get([id]))) ?? [null];
    if (page !== null && still) count = page.items.filter((letter) => letter.generation === generation).length;
  }
  return scribe.write(
    actor.name,
    "observe",
    "ok",
    { job: id, answer: state, generation, count, attempts, maxAttempts },
    since,
  );
};
