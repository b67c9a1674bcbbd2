// The pretend handlers: they take random virtual time, sometimes longer than a lease, say how far they are, ignore their
// abort for a while, and end in every way a run can end. Killers take their process along, in the calm as in the storm.
import { PermanentError, RetryAfterError } from "../../src/core/errors.ts";
import { FAILURE_CLASSES, type FailureClass } from "../../src/core/job.ts";
import { defineJob, type JobContext, type JobDefinition, type JobOptions } from "../../src/jobs/define-job.ts";
import { hashText } from "../support/history/event.ts";
import { BACKOFF, KILLER, PROGRAMS, type Scene } from "./scene.ts";
import type { Actor } from "./world.ts";

const RETRYABLE: readonly FailureClass[] = ["transient", "network", "system", "rate_limited", "timeout"];
const FINAL: readonly FailureClass[] = ["permanent", "validation", "authentication"];

/** Every error is named for its class, so that rules as users write them can tell. */
const RULES = FAILURE_CLASSES.map((kind) => ({ class: kind, name: `Pretend_${kind}` }));

/** The job types as one worker serves them. */
export function definitionsFor(actor: Actor, scene: Scene): JobDefinition[] {
  const { leaseMs } = scene.settings;
  const define = (type: string, options: Partial<JobOptions<unknown, unknown>> = {}): JobDefinition =>
    defineJob(type, {
      backoff: BACKOFF,
      classify: RULES,
      ...options,
      run: (_input, context) => recorded(actor, scene, context),
    });
  const all = [
    define("mail"),
    define("thumbnail", { timeout: leaseMs / 2, stuck: { after: leaseMs, retryAfter: 100 } }),
    define("invoice", { concurrency: actor.dice.between(1, 2) }),
    define(KILLER),
  ];
  if (scene.settings.programs === 1) return all;
  const program = PROGRAMS[Number(/^worker-(\d+)/.exec(actor.name)?.[1] ?? 0) % PROGRAMS.length] ?? [];
  return all.filter(({ type }) => program.includes(type));
}

/** Writes down when the handler is called, and whether it had been asked to stop when it returned. */
async function recorded(actor: Actor, scene: Scene, context: JobContext): Promise<unknown> {
  const { id, generation, payload, worker } = context.job;
  const { epoch, nonce } = context.lease;
  const line = { job: id, epoch, nonce, generation, payloadHash: hashText(payload), worker };
  const since = scene.scribe.write(actor.name, "run", "invoke", line);
  try {
    return await pretend(actor, scene, context);
  } finally {
    const answer = context.signal.aborted ? "stopped" : "ended";
    scene.scribe.write(actor.name, "run", "ok", { ...line, answer }, since);
  }
}

/** How this run ends. Once the world is calm, runs are short and succeed. */
async function pretend(actor: Actor, { world, settings, calmAt }: Scene, context: JobContext): Promise<unknown> {
  const { dice, system } = actor;
  const { job, signal } = context;
  const calm = world.now >= calmAt;
  if (job.type === KILLER) return kill(actor);
  const long = !calm && dice.chance(settings.longRuns);
  const deaf = !calm && dice.chance(0.08);
  if (!calm && dice.chance(0.15)) await context.progress({ step: 1 });
  const ms = long ? dice.between(settings.leaseMs / 2, 2 * settings.leaseMs) : dice.between(1, calm ? 60 : 300);
  await (deaf ? system.sleep(ms) : system.sleep(ms, signal));
  // Some finish what they do although they were asked to stop, and it may still count.
  if (signal.aborted && dice.chance(0.8)) throw signal.reason;
  if (calm) return job.id;
  // Some jobs fail for good again and again, so that generations follow each other.
  if (hashText(job.id) % 5 === 0 && dice.chance(0.8)) throw errorOf(dice.pick(FINAL));
  const roll = dice.random();
  if (roll < 0.6) return job.id;
  if (roll < 0.86) throw errorOf(dice.pick(RETRYABLE));
  if (roll < 0.9) throw errorOf(dice.pick(FINAL));
  if (roll < 0.92) throw dice.pick([new PermanentError("never"), new RetryAfterError("later", 200), undefined, "text"]);
  return context.snooze(dice.between(0, 800));
}

async function kill(actor: Actor): Promise<never> {
  await actor.system.sleep(actor.dice.between(1, 80));
  actor.crash();
  return new Promise<never>(() => {});
}

function errorOf(kind: FailureClass): Error {
  const error = new Error(`The pretend handler failed as ${kind}`);
  error.name = `Pretend_${kind}`;
  // Where it was made is the same for all, and long.
  delete error.stack;
  return error;
}
