// The job types of a chaos run. What a run does is written in its payload, so that it can be judged afterwards: how long
// it takes, whether it hears its abort, and how it ends. Every handler records when it starts and ends.
import { setTimeout as wait } from "node:timers/promises";
import { exponential } from "../../src/core/backoff.ts";
import { PermanentError } from "../../src/core/errors.ts";
import { defineJob, type JobContext, type JobOptions } from "../../src/jobs/define-job.ts";
import { hashText } from "../support/history/event.ts";
import { ownScribe } from "./file-scribe.ts";

/** How a run ends; `kill` takes its process along. */
export const ENDS = ["fine", "flaky", "permanent", "snooze", "progress", "block", "kill"] as const;
/** One of `ENDS`. */
export type End = (typeof ENDS)[number];

/** The payload of every job. */
export interface Body {
  readonly ms: number;
  readonly end: End;
  /** Goes on after its abort, as handlers do that never look. */
  readonly deaf: boolean;
  readonly filling: string;
}

const BACKOFF = exponential({ initial: 50, multiplier: 2, max: 800, jitter: "full" });
// Kills at random must not use up the budgets of the innocent.
const PATIENT = { maxAttempts: 200, maxCrashes: 50, backoff: BACKOFF };

const handler: JobOptions<Body, unknown>["run"] = async (body, context) => {
  const { id, epoch, generation, payload, worker } = context.job;
  const scribe = ownScribe();
  const line = { job: id, epoch, nonce: context.lease.nonce, generation, payloadHash: hashText(payload), worker };
  const since = scribe.write(scribe.actor, "run", "invoke", line);
  try {
    return await act(body, context);
  } finally {
    scribe.write(scribe.actor, "mark", "ok", { ...line, answer: "ended" }, since);
  }
};

async function act(body: Body, context: JobContext): Promise<unknown> {
  if (body.end === "progress") await context.progress({ half: true });
  if (body.end === "block") block(body.ms);
  else await wait(body.ms, undefined, body.deaf ? {} : { signal: context.signal });
  const { id, epoch, generation } = context.job;
  if (body.end === "kill") die(context);
  // A redriven one succeeds, or people would send it back for ever.
  if (body.end === "permanent" && generation === 1) throw new PermanentError("This job fails for good.");
  if (body.end === "flaky" && hashText(`${id} ${epoch}`) % 2 === 0) throw new Error("This job fails now and then.");
  if (body.end === "snooze" && hashText(`${id} ${epoch}`) % 2 === 0) return context.snooze(200);
  return { by: process.pid };
}

/** Takes the event loop along; heartbeats must not mind. */
function block(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

/** Ends this process as an out-of-memory killer would, and says so first: what others then see is true. */
function die(context: JobContext): never {
  const scribe = ownScribe();
  scribe.write(scribe.actor, "gone", "ok", { worker: context.job.worker });
  process.kill(process.pid, "SIGKILL");
  for (;;);
}

/** Ordinary jobs of two types and two queues. */
export const mail = defineJob<Body, unknown>("mail", { ...PATIENT, run: handler });
export const invoice = defineJob<Body, unknown>("invoice", { ...PATIENT, queue: "bulk", run: handler });
/** Jobs with a small crash budget: the killers among them die of it, the others never. */
export const fragile = defineJob<Body, unknown>("fragile", { ...PATIENT, maxCrashes: 3, run: handler });
