// A recipe makes a new payload from that of a dead letter: a merge patch, which keeps every byte that it does not name, or
// a function, which gets the payload parsed. A function of the user may do anything, so it runs for a limited time, and a
// module in a thread of its own.
import { isRedriveError, RedriveError } from "../core/errors.ts";
import { textOf } from "../core/failure.ts";
import type { DeadLetter } from "../core/job.ts";
import { invalid } from "../core/options.ts";
import { encodePayload } from "../core/payload.ts";
import { redactJson } from "../core/redact.ts";
import { openPatch } from "../core/recovery/merge-patch.ts";
import { safeLine } from "../core/safe-text.ts";
import { TimeBoxError, withinTime } from "../system/time-box.ts";

// oxlint-disable typescript/no-explicit-any -- the caller knows the form of its payloads
/** Makes a new payload: gets the payload as a value, and the dead letter. It may return a promise. */
export type RecipeFunction = (payload: any, letter: DeadLetter) => unknown;
// oxlint-enable typescript/no-explicit-any

/**
 * How to make a new payload from the old one: a JSON merge patch (RFC 7396) as text, a function, or a module whose
 * default export is such a function, by its path.
 */
export type Recipe = string | RecipeFunction | { readonly module: string };

/** A recipe that is ready to be used. */
export interface OpenRecipe {
  /** True for a function: it gets numbers as JavaScript holds them. */
  readonly parses: boolean;
  /** What the event log says of it. */
  readonly about: object;
  /** The new payload as JSON text; throws `payload_too_large` where it is too large. */
  rewrite(letter: DeadLetter, maxBytes: number): Promise<string>;
  /** Ends what it has started. */
  close(): void;
}

/** Opens a module with a recipe; the function answers the new payload as JSON text. */
export type OpenModule = (path: string) => Promise<Pick<OpenRecipe, "rewrite" | "close">>;

/** How long a function may take for one letter. */
export const RECIPE_MS = 5_000;

/** Makes a recipe ready; throws for a bad one. */
export async function openRecipe(recipe: Recipe, openModule: OpenModule): Promise<OpenRecipe> {
  if (typeof recipe === "string") {
    const patch = openPatch(recipe);
    const rewrite: OpenRecipe["rewrite"] = async ({ job }, maxBytes) => patch(job.payload, maxBytes);
    return { parses: false, about: { patch: redactJson(recipe) }, rewrite, close: () => undefined };
  }
  if (typeof recipe === "function") {
    const rewrite: OpenRecipe["rewrite"] = (letter, maxBytes) => rewriteBy(recipe, letter, maxBytes);
    return { parses: true, about: { recipe: "function" }, rewrite, close: () => undefined };
  }
  const path: unknown = (recipe as { readonly module?: unknown } | null)?.module;
  if (typeof path !== "string" || path === "") {
    const expected = "a merge patch as JSON text, a function, or { module: FILE }";
    throw invalid("recipe", expected, recipe, "pass one of these");
  }
  return { parses: true, about: { recipe: path }, ...(await openModule(path)) };
}

/** The new payload that a function makes; throws `invalid_argument` where it makes none. */
export async function rewriteBy(run: RecipeFunction, letter: DeadLetter, maxBytes: number): Promise<string> {
  const { job } = letter;
  let value: unknown;
  try {
    // A copy, because the function may change it, and the letter is used afterwards.
    value = await withinTime(RECIPE_MS, () => run(JSON.parse(job.payload), structuredClone(letter)));
  } catch (error) {
    if (error instanceof TimeBoxError) throw tooSlow(job.id);
    throw badRecipe(job.id, `an error: ${safeLine(textOf(error))}`, "correct the function");
  }
  if (value === undefined) throw badRecipe(job.id, "undefined", "return the payload, changed or not");
  try {
    const text = encodePayload(value, maxBytes);
    // What the function left as it was keeps its bytes.
    return text === JSON.stringify(JSON.parse(job.payload)) ? job.payload : text;
  } catch (error) {
    if (isRedriveError(error, "payload_too_large")) throw error;
    throw badRecipe(job.id, safeLine(textOf(error)), "return plain data");
  }
}

/** The error for a function that did not answer in time. */
export function tooSlow(id: string): RedriveError {
  return badRecipe(id, `no answer within ${RECIPE_MS / 1_000} s`, "end its loop");
}

/** The error for a function that makes no payload of a letter. */
export function badRecipe(id: string, came: string, remedy: string): RedriveError {
  const message = `recipe: expected a new payload for job ${id}; got ${came}; ${remedy}; nothing was written`;
  return new RedriveError("invalid_argument", message, { details: { id } });
}
