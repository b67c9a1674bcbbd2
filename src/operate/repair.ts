// Repairs dead letters: gives dead jobs another payload, one by hand or many by a recipe, and takes a change back. A new
// payload is checked by the schema of its type first. Every payload that a job had is kept as long as the job.
import { RedriveError } from "../core/errors.ts";
import { subjectOf } from "../core/event-log.ts";
import type { Job } from "../core/job.ts";
import { invalid, parseOptions } from "../core/options.ts";
import type { ActionOptions, EventLog } from "../report/event-log.ts";
import { payloadHash, type PayloadVersion } from "../store/payloads.ts";
import type { LetterFilter, Store } from "../store/store.ts";
import type { DeadLetterFilter, DeadLetterTarget } from "./dead-letters.ts";
import { aboutTarget, checkId } from "./filter.ts";
import { isoTime } from "./json-form.ts";
import { openRecipe, type OpenModule, type OpenRecipe, type Recipe } from "./recipe.ts";
import {
  checkedPayload,
  type Known,
  letterPages,
  type LetterTarget,
  PreviewSum,
  type RepairPreview,
  rewriteLetter,
} from "./repair-letters.ts";

/** The result of a change of one payload. */
export interface EditAnswer {
  readonly id: string;
  /** The number of the payload that the job has now; 0 where it never changed. */
  readonly version: number;
  /** False where the job had this payload already, so that nothing was written. */
  readonly changed: boolean;
  /** True where the job had been sent back to work and was recalled first: it is dead again. */
  readonly recalled: boolean;
}

/** The result of a repair of many payloads. */
export interface RepairSummary {
  /** Letters that got a new payload. */
  readonly repaired: number;
  /** Letters whose payload stays as it is. */
  readonly unchanged: number;
  /** Letters that were skipped, because their new payload does not fit or a function would change a number. */
  readonly skipped: number;
  /** Jobs that are not dead, or that another call changed meanwhile. */
  readonly refused: number;
  /** Ids without a job. */
  readonly missing: number;
}

/** The part of the dead letters that changes payloads. */
export interface Repair {
  /**
   * Gives a dead job another payload, as JSON text. `seen` is the job as you saw it: the call is refused where another
   * call has changed it since. Rejects with `invalid_payload` where it does not fit the schema of the type,
   * `invalid_argument` where this process does not know the type, `illegal_transition` where the job is not dead.
   */
  edit(
    id: string,
    payload: string,
    options?: { readonly seen?: Pick<Job, "payload" | "generation"> } & ActionOptions,
  ): Promise<EditAnswer>;
  /**
   * Gives a job its first payload again, byte for byte. A job that was sent back to work and that no worker has taken is
   * recalled first: it is dead again.
   */
  undo(id: string, options?: ActionOptions): Promise<EditAnswer>;
  /** The payloads that a job has had, the first one first; empty where it never changed. */
  payloads(id: string): Promise<PayloadVersion[]>;
  /** What a recipe would do to the dead letters that match; writes nothing. */
  preview(target: DeadLetterTarget, recipe: Recipe): Promise<RepairPreview>;
  /**
   * Gives the dead letters that match new payloads made by a recipe. Looks at all of them first: where one does not fit,
   * it writes nothing and rejects with `invalid_payload`, unless `skipMisfits: true` leaves those as they are.
   */
  repair(
    target: DeadLetterTarget,
    recipe: Recipe,
    options?: { readonly skipMisfits?: boolean } & ActionOptions,
  ): Promise<RepairSummary>;
}

/** What repairs work with. */
export interface RepairDependencies extends Known {
  readonly store: Store;
  readonly eventLog: EventLog;
  readonly openModule: OpenModule;
}

/** How a filter of the caller becomes one of the store; throws for a bad one. */
type FilterOf = (filter: DeadLetterFilter) => LetterFilter;

/** Opens the repairs of a store. */
export function openRepair(parts: RepairDependencies, filterOf: FilterOf): Repair {
  const { store, openModule } = parts;
  return {
    edit: (id, payload, options = {}) => edit(parts, id, payload, options),
    undo: (id, options = {}) => undo(parts, id, options),
    payloads: async (id) => store.payloads(checkId(id)),
    async preview(target, recipe) {
      const letters = targetOf(target, filterOf);
      const opened = await openRecipe(recipe, openModule);
      try {
        return await look(parts, letters, opened, {});
      } finally {
        opened.close();
      }
    },
    async repair(target, recipe, options = {}) {
      const { skipMisfits = false, why } = parseOptions(options, ["skipMisfits", "why"], "repair");
      if (typeof skipMisfits !== "boolean")
        throw invalid("skipMisfits", "true or false", skipMisfits, "use one of these");
      const letters = targetOf(target, filterOf);
      const { subject, details } = aboutTarget(target, filterOf);
      const opened = await openRecipe(recipe, openModule);
      try {
        const upTo = {};
        const preview = await look(parts, letters, opened, upTo);
        if (!skipMisfits) refuseMisfits(preview);
        const sum = { repaired: 0, unchanged: 0, skipped: 0, refused: 0, missing: 0 };
        const about = { ...details, ...opened.about };
        const action = { kind: "job.edited", subject, why, details: about, outcome: () => sum };
        await parts.eventLog.act(action, () => writeAll(parts, letters, opened, upTo, why as string | undefined, sum));
        return sum;
      } finally {
        opened.close();
      }
    },
  };
}

function targetOf(target: DeadLetterTarget, filterOf: FilterOf): LetterTarget {
  if (typeof target === "string" || Array.isArray(target)) return { ids: [...new Set([target].flat().map(checkId))] };
  return { filter: filterOf(target as DeadLetterFilter) };
}

/** Looks at all letters of a target, and remembers which of them were there. */
async function look(
  { store, ...known }: RepairDependencies,
  target: LetterTarget,
  recipe: OpenRecipe,
  upTo: { through?: number },
): Promise<RepairPreview> {
  const sum = new PreviewSum();
  for await (const page of letterPages(store, target, upTo))
    for (const letter of page)
      if (typeof letter === "string") sum.pass(letter);
      else sum.add(letter.job.id, await rewriteLetter(letter, recipe, known));
  return sum.preview();
}

/** Throws where a letter does not fit: the whole repair is refused. */
function refuseMisfits(preview: RepairPreview): void {
  const { misfits, losesNumbers, letters } = preview;
  const count = misfits.count + losesNumbers.count;
  if (count === 0) return;
  const named = [...misfits.named, ...losesNumbers.named].slice(0, 3).map(({ id, issue }) => `${id} (${issue})`);
  const more = count > named.length ? ` and ${count - named.length} more` : "";
  const message = `recipe: expected new payloads that fit; ${count} of ${letters} do not: ${named.join("; ")}${more}; correct the recipe, or skip the misfits; nothing was written`;
  throw new RedriveError("invalid_payload", message, { details: { preview } });
}

/** Writes the new payloads, a page at a time. */
async function writeAll(
  { store, eventLog, ...known }: RepairDependencies,
  target: LetterTarget,
  recipe: OpenRecipe,
  upTo: { through?: number },
  why: string | undefined,
  sum: { -readonly [K in keyof RepairSummary]: number },
): Promise<void> {
  for await (const page of letterPages(store, target, upTo)) {
    const changes: Parameters<Store["repair"]>[0][number][] = [];
    for (const letter of page) {
      if (letter === "missing") sum.missing += 1;
      else if (letter === "notDead") sum.refused += 1;
      else {
        const made = await rewriteLetter(letter, recipe, known);
        if (made.kind === "fits") changes.push(changeOf(letter.job, made.payload, eventLog.actor, why));
        else sum[made.kind === "unchanged" ? "unchanged" : "skipped"] += 1;
      }
    }
    for (const answer of changes.length === 0 ? [] : await store.repair(changes)) sum[answer] += 1;
  }
}

function changeOf({ id, generation, payload: before }: Job, payload: string, actor: string, why: string | undefined) {
  return { id, generation, was: payloadHash(before), payload, actor, why: why ?? null };
}

async function edit(
  parts: RepairDependencies,
  id: string,
  payload: string,
  options: Parameters<Repair["edit"]>[2] & object,
): Promise<EditAnswer> {
  const { seen, why } = parseOptions(options, ["seen", "why"], "edit") as typeof options;
  const { store } = parts;
  const job = await jobOf(store, checkId(id));
  if (job.state !== "dead") throw await notDead(store, job, "edited");
  if (seen !== undefined && (seen.generation !== job.generation || seen.payload !== job.payload))
    throw await overtaken(store, id);
  const text = await checkedPayload(job, payload, parts);
  if (text === job.payload) return answerOf(store, id, { changed: false, recalled: false });
  const details = { was: payloadHash(job.payload), becomes: payloadHash(text) };
  await parts.eventLog.act({ kind: "job.edited", subject: subjectOf("job", id), why, details }, () =>
    write(parts, job, text, why),
  );
  return answerOf(store, id, { changed: true, recalled: false });
}

async function undo(parts: RepairDependencies, id: string, options: ActionOptions): Promise<EditAnswer> {
  const { why } = parseOptions(options, ["why"], "undo") as ActionOptions;
  const { store } = parts;
  const job = await jobOf(store, checkId(id));
  const versions = await store.payloads(id);
  const [first, last] = [versions[0], versions.at(-1)];
  if (!first || !last || (job.payload === first.payload && last.payload === first.payload))
    throw new RedriveError("illegal_transition", `Job ${id} has its first payload; there is nothing to undo.`);
  if (job.payload !== last.payload) {
    const message = `Job ${id} has a payload that its producer has sent since the repair; undo would lose it; use edit instead.`;
    throw new RedriveError("illegal_transition", message, { details: { id } });
  }
  if (job.state !== "dead" && job.state !== "queued") throw await notDead(store, job, "undone");
  const details = { was: payloadHash(job.payload), becomes: payloadHash(first.payload) };
  const action = { kind: "job.undone", subject: subjectOf("job", id), why, details };
  const recalled = await parts.eventLog.act(
    { ...action, outcome: (isRecalled: boolean | undefined) => ({ recalled: isRecalled }) },
    async () => {
      const dead = job.state === "dead" ? job : await recall(store, job);
      await write(parts, dead, first.payload, why);
      return dead !== job;
    },
  );
  return answerOf(store, id, { changed: true, recalled });
}

/** Takes back a job that was sent and that no worker has taken; it is dead again, under its new generation. */
async function recall(store: Store, job: Job): Promise<Job> {
  const [answer] = await store.recall([{ id: job.id, generation: job.generation - 1 }]);
  if (answer !== "recalled") {
    const message = `Job ${job.id} cannot be undone: a worker has taken it since it was sent back to work. Cancel it, or wait until it has ended; nothing was written.`;
    throw new RedriveError("illegal_transition", message, { details: { id: job.id } });
  }
  return { ...job, state: "dead" };
}

/** Writes a payload where the job is still as it was seen. */
async function write({ store, eventLog }: RepairDependencies, job: Job, payload: string, why: string | undefined) {
  const [answer] = await store.repair([changeOf(job, payload, eventLog.actor, why)]);
  if (answer === "missing") throw noJob(job.id);
  if (answer === "refused") throw await overtaken(store, job.id);
}

async function answerOf(store: Store, id: string, rest: Pick<EditAnswer, "changed" | "recalled">): Promise<EditAnswer> {
  return { id, version: (await store.payloads(id)).at(-1)?.n ?? 0, ...rest };
}

async function jobOf(store: Store, id: string): Promise<Job> {
  const [job] = await store.get([id]);
  if (!job) throw noJob(id);
  return job;
}

function noJob(id: string): RedriveError {
  const message = `There is no job ${JSON.stringify(id.slice(0, 80))}. Check the id; finished jobs are removed after their retention.`;
  return new RedriveError("not_found", message, { details: { id } });
}

async function notDead(store: Store, { id, state }: Job, done: string): Promise<RedriveError> {
  const message = `Job ${id} is ${state}, and only a dead job can be ${done}${await whoWas(store, id)}; nothing was written.`;
  return new RedriveError("illegal_transition", message, { details: { id, state } });
}

/** The error for a job that another call has changed since the caller looked at it. */
async function overtaken(store: Store, id: string): Promise<RedriveError> {
  const [job] = await store.get([id]);
  const now = job ? `it is ${job.state} now` : "it is deleted";
  const message = `Job ${id} was changed since you looked at it: ${now}${await whoWas(store, id)}; look again; nothing was written.`;
  return new RedriveError("illegal_transition", message, { details: { id, state: job?.state ?? null } });
}

/** Clocks of the event log and of letters are the same, but an intent is written before its redrive. */
const INTENT_MS = 60_000;

/** Who sent the job back to work last, as far as the event log knows. */
async function whoWas(store: Store, id: string): Promise<string> {
  const [{ items: letters }, { items }] = await Promise.all([
    store.deadLetters({ jobId: id, redriven: true, limit: 2, payloads: false }),
    store.events({ subject: subjectOf("job", id), kind: "dead_letters.retry", limit: 2 }),
  ]);
  const sentAt = letters.find(({ redrivenAt }) => redrivenAt !== null)?.redrivenAt ?? null;
  if (sentAt === null) return "";
  const other = items.find(({ at }) => at >= sentAt - INTENT_MS);
  return other?.actor ? ` (${other.actor} sent it back to work at ${isoTime(sentAt)})` : "";
}
