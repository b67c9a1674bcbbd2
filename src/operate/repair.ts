// Repairs dead letters: gives dead jobs another payload, one by hand or many by a recipe, and takes a change back. A new
// payload is checked by the schema of its type first. Every payload that a job had is kept as long as the job.
import { isRedriveError, RedriveError } from "../core/errors.ts";
import { checkWhy } from "../core/event-log.ts";
import { textOf } from "../core/failure.ts";
import type { Job } from "../core/job.ts";
import { invalid, parseOptions } from "../core/options.ts";
import type { ActionOptions } from "../report/event-log.ts";
import type { PayloadChange, PayloadVersion } from "../store/payloads.ts";
import type { LetterFilter, Store } from "../store/store.ts";
import { openSpool, type Spool } from "../system/spool.ts";
import type { DeadLetterFilter, DeadLetterTarget } from "./dead-letters.ts";
import { changeOf, edit, type EditAnswer, type EditDependencies, type EditOptions, stateNow, undo } from "./edit.ts";
import { aboutTarget, checkId } from "./filter.ts";
import { openRecipe, type OpenModule, type Recipe } from "./recipe.ts";
import { lookAtLetters, type LetterTarget, type Misfit, NAMED_MOST, type RepairPreview } from "./repair-letters.ts";

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
  /** The first 20 of those that another call changed between the look and the write, and what they are now. */
  readonly conflicts: readonly Misfit[];
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
  edit(id: string, payload: string, options?: EditOptions): Promise<EditAnswer>;
  /**
   * Gives a job the payload again that its producer sent last, byte for byte. A job that was sent back to work and that no
   * worker has taken is recalled in the same commit: it is dead again. Rejects with `illegal_transition` once a worker has
   * taken the job since, or its producer has replaced the payload.
   */
  undo(id: string, options?: ActionOptions): Promise<EditAnswer>;
  /** The payloads that a job has had, the first one first; empty where it never changed. */
  payloads(id: string): Promise<PayloadVersion[]>;
  /** What a recipe would do to the dead letters that match; writes nothing. */
  preview(target: DeadLetterTarget, recipe: Recipe): Promise<RepairPreview>;
  /**
   * Gives the dead letters that match new payloads made by a recipe. Makes all of them first, each once: where the recipe
   * fails, or one does not fit, it writes nothing and rejects, unless `skipMisfits: true` leaves misfits as they are.
   */
  repair(target: DeadLetterTarget, recipe: Recipe, options?: RepairOptions): Promise<RepairSummary>;
}

/** How to repair many payloads. */
export interface RepairOptions extends ActionOptions {
  /** True leaves the letters as they are whose new payload does not fit; default false. */
  readonly skipMisfits?: boolean;
  /** Asked with what the recipe would do, before anything is written; with any answer but true nothing is written. */
  readonly confirm?: (preview: RepairPreview) => boolean | Promise<boolean>;
}

/** What repairs work with. */
export interface RepairDependencies extends EditDependencies {
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
        return await lookAtLetters(parts, letters, opened);
      } finally {
        opened.close();
      }
    },
    repair: (target, recipe, options = {}) => repair(parts, filterOf, target, recipe, options),
  };
}

function targetOf(target: DeadLetterTarget, filterOf: FilterOf): LetterTarget {
  if (typeof target === "string" || Array.isArray(target)) return { ids: [...new Set([target].flat().map(checkId))] };
  return { filter: filterOf(target as DeadLetterFilter) };
}

async function repair(
  parts: RepairDependencies,
  filterOf: FilterOf,
  target: DeadLetterTarget,
  recipe: Recipe,
  options: RepairOptions,
): Promise<RepairSummary> {
  const { skipMisfits, confirm, why } = optionsOf(options);
  const letters = targetOf(target, filterOf);
  const { subject, details } = aboutTarget(target, filterOf);
  const spool = openSpool();
  try {
    const opened = await openRecipe(recipe, parts.openModule);
    const { actor } = parts.eventLog;
    const keep = (job: Job, payload: string): Promise<void> =>
      spool.add(JSON.stringify(changeOf(job, payload, actor, why))).catch((cause: unknown) => {
        throw notKept(cause);
      });
    const preview = await lookAtLetters(parts, letters, opened, keep).finally(() => opened.close());
    if (!skipMisfits) refuseMisfits(preview);
    const { unchanged, notDead, missing, misfits, losesNumbers } = preview;
    const skipped = misfits.count + losesNumbers.count;
    const sum: Sum = { repaired: 0, unchanged, skipped, refused: notDead, conflicts: [], missing };
    if (confirm && (await confirm(preview)) !== true) return sum;
    const about = { ...details, ...opened.about };
    const isEmpty = preview.fits === 0;
    const action = { kind: "job.edited", subject, why, isEmpty, details: about, outcome: () => sum };
    await parts.eventLog.act(action, () => writeAll(parts.store, spool, sum, preview.fits));
    return sum;
  } finally {
    await spool.close();
  }
}

function optionsOf(options: RepairOptions) {
  const { skipMisfits = false, confirm, why } = parseOptions(options, ["skipMisfits", "confirm", "why"], "repair");
  if (typeof skipMisfits !== "boolean") throw invalid("skipMisfits", "true or false", skipMisfits, "use one of these");
  if (confirm !== undefined && typeof confirm !== "function")
    throw invalid("confirm", "a function", confirm, "leave it out to write without a question");
  if (why !== undefined) checkWhy(why);
  return {
    skipMisfits,
    confirm: confirm as RepairOptions["confirm"] | undefined,
    why: why as string | undefined,
  };
}

function notKept(cause: unknown): RedriveError {
  const message = `So many new payloads need a temporary file, which cannot be written: ${textOf(cause)}; free some space, or set TMPDIR to another folder; nothing was written.`;
  return new RedriveError("aborted", message, { cause });
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

type Sum = { -readonly [K in keyof RepairSummary]: RepairSummary[K] } & { readonly conflicts: Misfit[] };

/** The changes of one write, in number and in characters of payloads. */
const WRITE_MOST = { changes: 200, chars: 4_194_304 } as const;

/** Writes the new payloads, some at a time; each only where its letter is as the recipe saw it. */
async function writeAll(store: Store, spool: Spool, sum: Sum, fits: number): Promise<void> {
  let changes: PayloadChange[] = [];
  let chars = 0;
  const write = async (): Promise<void> => {
    const answers = changes.length === 0 ? [] : await store.repair(changes);
    for (const [at, answer] of answers.entries()) {
      sum[answer] += 1;
      if (answer === "repaired" || sum.conflicts.length >= NAMED_MOST) continue;
      const { id } = changes[at] as PayloadChange;
      sum.conflicts.push({ id, issue: await stateNow(store, id) });
    }
    [changes, chars] = [[], 0];
  };
  try {
    for await (const text of spool.all()) {
      changes.push(JSON.parse(text) as PayloadChange);
      chars += text.length;
      if (changes.length >= WRITE_MOST.changes || chars >= WRITE_MOST.chars) await write();
    }
    await write();
  } catch (error) {
    throw sum.repaired === 0 ? error : brokenOff(error, sum.repaired, fits);
  }
}

/** The error where some letters have their new payload and the store did not take the others. */
function brokenOff(error: unknown, repaired: number, fits: number): RedriveError {
  const { code, message } = isRedriveError(error)
    ? error
    : { code: "store_unavailable" as const, message: String(error) };
  const done = `The repair broke off after ${repaired} of ${fits} dead letters, which keep their new payload`;
  return new RedriveError(code, `${done}: ${message} Repeat it for the others.`, {
    cause: error,
    details: { repaired },
  });
}
