// Producers enqueue jobs with and without keys, as fast as the backlog allows. A keyed enqueue without an answer is
// repeated until there is one, if need be by the next life of a producer that was killed over it.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isRedriveError } from "../../src/core/errors.ts";
import { type NewJob, UNIQUE_MODES } from "../../src/core/new-job.ts";
import type { JobDefinition } from "../../src/jobs/define-job.ts";
import { realSystem } from "../../src/system/real.ts";
import type { Dice } from "../simulation/dice.ts";
import { createDice } from "../simulation/dice.ts";
import { hashText } from "../support/history/event.ts";
import { termsOf } from "../../src/core/job.ts";
import type { Stage } from "./actor.ts";
import { type FileLine, readFileName, stamp } from "./file-scribe.ts";
import { type Body, type End, fragile, invoice, mail } from "./jobs.ts";
import { sleep, told } from "./told.ts";

const BACKLOG_MOST = 250;
const TRIES_MOST = 200;
const KILLER_CHANCE = 0.001;

/** Produces until it is calm. */
export async function produce(stage: Stage): Promise<void> {
  const { store, dice, calm, ready, predecessor } = stage;
  const owed = predecessor === null ? [] : unanswered(predecessor);
  ready();
  for (const job of owed) await insist(stage, [job]);
  // However short the run, there is one killer in it.
  if (predecessor === null) await insist(stage, [jobOf(fragile, KILLER, null)]);
  for (let round = 0; !calm.aborted; round++) {
    await sleep(dice.between(20, 150));
    if (round % 8 === 0) await letThemCatchUp(stage);
    if (!calm.aborted)
      await insist(
        stage,
        Array.from({ length: dice.pick([1, 1, 2, 4, 8]) }, () => newJob(dice)),
      );
  }
  await attempt(() => store.count());
}

async function letThemCatchUp({ store, calm }: Stage): Promise<void> {
  while (!calm.aborted && ((await attempt(() => store.count()))?.queued ?? 0) > BACKLOG_MOST) await sleep(100);
}

/** Repeats what has a key until it is answered, sometimes under another id; what has none is repeated or given up. */
async function insist({ store, dice }: Stage, jobs: readonly NewJob[]): Promise<void> {
  let batch = jobs;
  for (let tries = 0; tries < TRIES_MOST && batch.length > 0; tries++) {
    const asked = batch;
    if ((await attempt(() => store.enqueue(asked))) !== null) return;
    await sleep(dice.between(20, 300));
    batch = batch.filter(({ key }) => key !== null || dice.chance(0.7));
    if (dice.chance(0.3)) batch = batch.map((job) => (job.key === null ? job : { ...job, id: realSystem.jobId() }));
  }
}

/** The keyed jobs that an earlier life asked for without hearing an answer, to be asked for again. */
function unanswered(life: string): NewJob[] {
  const folder = told("folder");
  const name = readdirSync(folder).find((file) => readFileName(file)?.actor === life);
  if (name === undefined) return [];
  const open = new Map<number, string>();
  // The last piece is empty, or a line that the kill cut short and whose call was never sent.
  for (const text of readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1)) {
    const line = JSON.parse(text) as FileLine;
    if (line.op !== "enqueue") continue;
    // Of the other kinds of keys the answer changes with time, so that nothing is owed.
    if (line.phase === "invoke" && line.key && !line.mode) open.set(line.at, line.key);
    else if (line.phase === "ok") open.delete(line.since);
  }
  return [...open.values()].map((keyed) => {
    const [type, key = ""] = keyed.split("/");
    const definition = [mail, invoice].find((candidate) => candidate.type === type) ?? mail;
    return jobOf(definition, keyedBody(definition.type, key), key);
  });
}

function newJob(dice: Dice): NewJob {
  const delayMs = dice.chance(0.1) ? dice.between(1, 2_000) : 0;
  if (dice.chance(KILLER_CHANCE)) return { ...jobOf(fragile, KILLER, null), delayMs };
  if (dice.chance(0.1)) return { ...jobOf(fragile, rollBody(dice), null), delayMs };
  const definition = dice.pick([mail, mail, invoice]);
  if (dice.chance(0.15)) return inMode(jobOf(definition, rollBody(dice), null), dice, delayMs);
  if (dice.chance(0.1)) return inGroup(jobOf(definition, rollBody(dice), null), dice);
  if (!dice.chance(0.4)) return { ...jobOf(definition, rollBody(dice), null), priority: dice.pick([0, 0, 5]), delayMs };
  // Keys move on with time, so that producers meet under the same ones, with the same body and now and then another.
  const key = `key-${Math.floor(stamp() / 1e8) + dice.between(0, 20)}`;
  const body = keyedBody(definition.type, key);
  return jobOf(definition, dice.chance(0.05) ? { ...body, filling: "changed" } : body, key);
}

/** A key that stands for the job only while it waits or runs; few at a time, so that producers meet under them. */
function inMode(job: NewJob, dice: Dice, delayMs: number): NewJob {
  const unique = dice.pick(UNIQUE_MODES.filter((mode) => mode !== "key"));
  const key = `${unique}-${Math.floor(stamp() / 1e9) + dice.between(0, 2)}`;
  return { ...job, unique, key, digest: String(hashText(job.payload)), delayMs };
}

/** One of a few groups whose jobs go one after the other; all alike, so that their order is that of enqueue. */
function inGroup(job: NewJob, dice: Dice): NewJob {
  return { ...job, group: dice.pick(["a", "b", "c"]), groupConcurrency: 1 };
}

const KILLER: Body = { ms: 30, end: "kill", deaf: true, filling: "" };

/** The body that belongs to a key, whoever enqueues it. */
function keyedBody(type: string, key: string): Body {
  return rollBody(createDice(Number(told("seed")), `${type} ${key}`));
}

function rollBody(dice: Dice): Body {
  const end: End = dice.pick([
    "fine",
    "fine",
    "fine",
    "fine",
    "fine",
    "flaky",
    "flaky",
    "snooze",
    "progress",
    "permanent",
  ]);
  if (dice.chance(0.005)) return { ms: 300, end: "block", deaf: true, filling: "" };
  const ms = dice.pick([dice.between(1, 30), dice.between(1, 30), dice.between(50, 250), dice.between(50, 800)]);
  return { ms, end, deaf: dice.chance(0.5), filling: dice.hex(dice.pick([8, 8, 200, 8_000])) };
}

function jobOf(definition: JobDefinition<Body>, body: Body, key: string | null): NewJob {
  const { type, queue, service, policy } = definition;
  const payload = JSON.stringify(body);
  return {
    id: realSystem.jobId(),
    type,
    queue,
    service,
    tenant: null,
    group: null,
    groupConcurrency: null,
    priority: 0,
    payload,
    version: 1,
    key,
    unique: "key",
    digest: key === null ? null : String(hashText(payload)),
    delayMs: 0,
    runAt: null,
    trace: null,
    ...termsOf(policy),
    limited: true,
  };
}

/** The answer, or null when the store gave none. */
export async function attempt<T>(call: () => Promise<T>): Promise<T | null> {
  try {
    return await call();
  } catch (error) {
    if (!isRedriveError(error, "store_unavailable")) throw error;
    return null;
  }
}
