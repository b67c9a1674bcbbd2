// Gives one dead job another payload, or takes a change back. A change is refused where the job is not the one any more
// that the operator saw, with who changed it.
import { RedriveError } from "../core/errors.ts";
import { checkWhy, subjectOf } from "../core/event-log.ts";
import type { Job } from "../core/job.ts";
import { invalid, parseOptions } from "../core/options.ts";
import { type Undo, undoOf } from "../core/recovery/undo.ts";
import type { ActionOptions, EventLog } from "../report/event-log.ts";
import { type PayloadChange, payloadHash } from "../store/payloads.ts";
import type { Store } from "../store/store.ts";
import { checkId } from "./filter.ts";
import { lastChange } from "./last-change.ts";
import { checkedPayload, type Known } from "./repair-letters.ts";

/** The result of a change of one payload. */
export interface EditAnswer {
  /** The id of the job. */
  readonly id: string;
  /** The number of the payload that the job has now; 0 where it never changed. */
  readonly version: number;
  /** False where the job had this payload already, so that nothing was written. */
  readonly changed: boolean;
  /** True where the job had been sent back to work and was recalled first: it is dead again. */
  readonly recalled: boolean;
}

/** How to change one payload. */
export interface EditOptions extends ActionOptions {
  /** The job as you saw it: the call is refused where another call has changed it since. */
  readonly seen?: Pick<Job, "payload" | "generation">;
  /** True only checks whether the change could be made, and writes nothing; default false. */
  readonly dryRun?: boolean;
}

/** What edits work with. */
export interface EditDependencies extends Known {
  readonly store: Store;
  readonly eventLog: EventLog;
}

/** A change of the payload of a job as the caller saw it. */
export function changeOf(
  { id, generation, payload: before }: Job,
  payload: string,
  actor: string,
  why: string | undefined,
): PayloadChange {
  return { id, generation, was: payloadHash(before), payload, actor, why: why ?? null };
}

/** Gives a dead job another payload. */
export async function edit(
  parts: EditDependencies,
  id: string,
  payload: string,
  options: EditOptions,
): Promise<EditAnswer> {
  const { seen, why, dryRun = false } = optionsOf(options);
  const { store, eventLog } = parts;
  const job = await jobOf(store, checkId(id));
  if (job.state !== "dead") throw await notDead(store, job, "edited");
  if (seen !== undefined && (seen.generation !== job.generation || seen.payload !== job.payload))
    throw await overtaken(store, id);
  if (payload === job.payload) return answerOf(store, id, { changed: false, recalled: false });
  const text = await checkedPayload(job, payload, parts);
  if (text === job.payload) return answerOf(store, id, { changed: false, recalled: false });
  if (dryRun) return answerOf(store, id, { changed: true, recalled: false });
  const details = { was: payloadHash(job.payload), becomes: payloadHash(text) };
  await eventLog.act({ kind: "job.edited", subject: subjectOf("job", id), why, details }, async () => {
    const [answer] = await store.repair([changeOf(job, text, eventLog.actor, why)]);
    if (answer !== "repaired") throw await overtaken(store, id);
  });
  return answerOf(store, id, { changed: true, recalled: false });
}

function optionsOf(options: EditOptions): EditOptions {
  const { seen, why, dryRun = false } = parseOptions(options, ["seen", "why", "dryRun"], "edit");
  if (why !== undefined) checkWhy(why);
  if (typeof dryRun !== "boolean") throw invalid("dryRun", "true or false", dryRun, "leave it out to write");
  const { payload, generation } = (seen ?? {}) as Partial<Record<keyof Job, unknown>>;
  if (seen !== undefined && (typeof payload !== "string" || !Number.isSafeInteger(generation)))
    throw invalid("seen", "the job as you saw it, with payload and generation", seen, "pass it, or leave it out");
  return { dryRun, ...(seen !== undefined && { seen: seen as Job }), ...(why !== undefined && { why: why as string }) };
}

/** What undo would do to a job now. */
export async function undoFor(store: Store, job: Job): Promise<Undo> {
  const { id } = job;
  const query = { jobId: id, redriven: true, limit: LETTERS, payloads: false };
  const [versions, letters] = await Promise.all([store.payloads(id), store.deadLetters(query)]);
  return undoOf(job, versions, letters.items);
}

/** The letters of a job that undo looks at. */
const LETTERS = 200;

/** Gives a job the payload again that its producer sent last. */
export async function undo(parts: EditDependencies, id: string, options: ActionOptions): Promise<EditAnswer> {
  const { why } = parseOptions(options, ["why"], "undo") as ActionOptions;
  if (why !== undefined) checkWhy(why);
  const { store, eventLog } = parts;
  const job = await jobOf(store, checkId(id));
  const decided = await undoFor(store, job);
  if ("refused" in decided) throw await notUndone(store, job, decided);
  const { payload } = decided;
  const recalls = job.state === "queued";
  const details = { was: payloadHash(job.payload), becomes: payloadHash(payload), recalls };
  await eventLog.act({ kind: "job.undone", subject: subjectOf("job", id), why, details }, async () => {
    const { generation, ...change } = changeOf(job, payload, eventLog.actor, why);
    const [answer] = recalls
      ? await store.recall([{ id, generation: generation - 1, repair: change }])
      : await store.repair([{ ...change, generation }]);
    if (answer === "recalled" || answer === "repaired") return;
    const [now] = recalls ? await store.get([id]) : [];
    const isTaken = now && now.generation === generation && now.payload === job.payload;
    throw isTaken ? await notUndone(store, job, { refused: "taken" }) : await overtaken(store, id);
  });
  return answerOf(store, id, { changed: true, recalled: recalls });
}

async function notUndone(
  store: Store,
  job: Job,
  { refused }: Extract<Undo, { refused: string }>,
): Promise<RedriveError> {
  const { id } = job;
  if (refused === "state") return notDead(store, job, "undone");
  const why = {
    nothing: "has the payload that its producer sent; there is nothing to undo",
    replaced: "has a payload that its producer has sent since the repair; undo would lose it; use edit instead",
    taken: "was taken by a worker with its new payload since the repair; use edit to give it another one",
  }[refused];
  return new RedriveError("illegal_transition", `Job ${id} ${why}; nothing was written.`, { details: { id, refused } });
}

async function answerOf(store: Store, id: string, rest: Pick<EditAnswer, "changed" | "recalled">): Promise<EditAnswer> {
  return { id, version: (await store.payloads(id)).at(-1)?.n ?? 0, ...rest };
}

async function jobOf(store: Store, id: string): Promise<Job> {
  const [job] = await store.get([id]);
  if (job) return job;
  const message = `There is no job ${JSON.stringify(id.slice(0, 80))}. Check the id; finished jobs are removed after their retention.`;
  throw new RedriveError("not_found", message, { details: { id } });
}

async function notDead(store: Store, { id, state }: Job, done: string): Promise<RedriveError> {
  const message = `Job ${id} is ${state}, and only a dead job can be ${done}${await lastChange(store, id)}; nothing was written.`;
  return new RedriveError("illegal_transition", message, { details: { id, state } });
}

/** The error for a job that another call has changed since the caller looked at it. */
async function overtaken(store: Store, id: string): Promise<RedriveError> {
  const message = `Job ${id} was changed since you looked at it: ${await stateNow(store, id)}; look again; nothing was written.`;
  return new RedriveError("illegal_transition", message, { details: { id } });
}

/** What a job is now and who has changed it last, for an operator who comes too late. */
export async function stateNow(store: Store, id: string): Promise<string> {
  const [job] = await store.get([id]);
  return `${job ? `it is ${job.state} now` : "it is deleted"}${await lastChange(store, id)}`;
}
