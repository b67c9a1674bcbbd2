// Producers: they enqueue jobs with and without keys. A keyed enqueue without an answer is repeated until there is one,
// sometimes under another id, as a restarted program would; a keyless one is repeated under its own id or given up.
import { type NewJob, UNIQUE_MODES } from "../../src/core/new-job.ts";
import type { Store } from "../../src/store/store.ts";
import { hashText } from "../support/history/event.ts";
import { USUAL_TERMS } from "../../src/core/job.ts";
import type { Dice } from "./dice.ts";
import { attempt, KILLER, NAMES, type Scene } from "./scene.ts";
import type { Actor } from "./world.ts";

/** Longer than what the pruners of a simulation say, and than what is left of it after the first jobs. */
const KEPT_MS = 60_000;

/** Makes its requests, one after the other, and is done. */
export async function produce(actor: Actor, store: Store, scene: Scene): Promise<void> {
  const { dice, system } = actor;
  const modes = scene.world.dice(`modes:${actor.name}`);
  scene.busy++;
  let done = false;
  actor.onCrash(() => {
    if (!done) scene.busy--;
  });
  for (let request = 0; request < scene.settings.requests && scene.world.now < scene.calmAt; request++) {
    await system.sleep(dice.between(0, (2 * scene.settings.stormMs) / scene.settings.requests / 3));
    const jobs = Array.from({ length: dice.pick([1, 1, 2, 5]) }, () => inMode(newJob(actor), modes, scene));
    scene.known.push(...jobs.map((job) => job.id));
    scene.confirmed.push(...(await enqueue(actor, store, jobs)));
  }
  done = true;
  scene.busy--;
}

/** The ids that were confirmed. */
async function enqueue(actor: Actor, store: Store, jobs: readonly NewJob[]): Promise<string[]> {
  const { dice, system } = actor;
  let batch = jobs;
  for (;;) {
    const answers = await attempt(() => store.enqueue(batch));
    if (answers !== null) return answers.map((answer) => answer.id);
    await system.sleep(dice.between(20, 500));
    batch = batch.filter((job) => job.key !== null || dice.chance(0.7));
    if (batch.length === 0) return [];
    if (dice.chance(0.3)) batch = batch.map((job) => (job.key === null ? job : { ...job, id: system.jobId() }));
  }
}

/** A job to enqueue; keys come from a small pool, so that they meet again with the same and with other bodies. */
export function newJob(actor: Actor, more: Partial<NewJob> = {}): NewJob {
  const { dice, system } = actor;
  const type = more.type ?? (dice.chance(0.02) ? KILLER : dice.pick(NAMES.types));
  const key = dice.chance(0.4) ? `key-${dice.between(1, 25)}` : null;
  const body = key === null ? dice.hex(12) : `${type} ${key}${dice.chance(0.1) ? " changed" : ""}`;
  const payload = JSON.stringify({ body });
  // Jobs of one group have everything else in common, so that their order is that of enqueue.
  const group = more.delayMs === undefined && dice.chance(0.25) ? dice.pick(NAMES.groups) : null;
  const alike = {
    queue: NAMES.queues[0],
    service: NAMES.services[0],
    tenant: NAMES.tenants[0],
    priority: 0,
    delayMs: 0,
  };
  return {
    id: system.jobId(),
    type,
    queue: dice.pick(NAMES.queues),
    service: dice.pick(NAMES.services),
    tenant: dice.pick(NAMES.tenants),
    group,
    groupConcurrency: group === null ? null : group === NAMES.groups[2] ? 2 : 1,
    priority: dice.pick([0, 0, 5, 9]),
    payload,
    version: 1,
    key,
    unique: "key",
    digest: key === null ? null : String(hashText(payload)),
    delayMs: dice.chance(0.2) ? dice.between(1, 3000) : 0,
    runAt: null,
    trace: null,
    ...USUAL_TERMS,
    maxAttempts: dice.between(1, 4),
    maxCrashes: dice.pick([1, 3, 3, 3]),
    deadlineMs: dice.chance(0.1) ? dice.between(500, 8000) : null,
    limited: true,
    // Jobs of one program say how long they are kept, those of the other were enqueued by name.
    keepFinishedMs: type === NAMES.types[0] ? KEPT_MS : null,
    keepDeadMs: type === NAMES.types[0] ? KEPT_MS : null,
    ...(group !== null && alike),
    ...more,
  };
}

/** Keys of each mode; few, so that they meet again while their job waits or runs. */
const MODE_KEYS = 2;
const MODES = UNIQUE_MODES.filter((mode) => mode !== "key");

/** Some jobs get a key that stands for one of them only while it waits or runs. What a key replaces is alike otherwise. */
function inMode(job: NewJob, dice: Dice, { settings }: Scene): NewJob {
  if (!dice.chance(settings.modes)) return job;
  const unique = dice.pick(MODES);
  const number = dice.between(1, MODE_KEYS);
  const payload = JSON.stringify({ body: dice.hex(12) });
  const replaces = unique === "replace" || unique === "debounce";
  const group = replaces ? { group: null, groupConcurrency: null } : {};
  const alike = { ...group, maxAttempts: 3, maxCrashes: 3, deadlineMs: null };
  const delayMs = unique === "debounce" ? dice.between(200, 1500) : job.delayMs;
  const keyed = { unique, key: `${unique}-${number}`, payload, digest: String(hashText(payload)), delayMs };
  return job.type === KILLER ? job : { ...job, ...keyed, ...(replaces && alike) };
}
