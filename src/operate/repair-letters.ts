// Goes through dead letters with a recipe: which new payloads fit the schema of their type, which do not, which stay as
// they are, and which have numbers that a function would change. Reads a few letters at a time, so that memory stays flat.
import { isRedriveError, RedriveError } from "../core/errors.ts";
import type { DeadLetter, Job } from "../core/job.ts";
import { byteLength } from "../core/new-job.ts";
import { checkPayloadText } from "../core/payload.ts";
import { lostNumber } from "../core/recovery/lost-numbers.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { isMisfit, validated } from "../jobs/schema.ts";
import type { LetterFilter, Store } from "../store/store.ts";
import type { OpenRecipe } from "./recipe.ts";

/** Payloads may be large, so that few are read at a time. */
const PAGE = 50;
/** How many letters of a kind are named; all are counted. */
export const NAMED_MOST = 20;

/** A letter that a recipe cannot repair, and why. */
export interface Misfit {
  /** The id of its job. */
  readonly id: string;
  /** Why not. */
  readonly issue: string;
}

/** Letters of a kind: all are counted, the first 20 are named. */
export interface Misfits {
  /** How many there are. */
  readonly count: number;
  /** The first of them. */
  readonly named: readonly Misfit[];
}

/** What a recipe would do. */
export interface RepairPreview {
  /** The letters that were looked at. */
  readonly letters: number;
  /** Letters that get a new payload which fits the schema of their type. */
  readonly fits: number;
  /** Letters whose payload stays as it is. */
  readonly unchanged: number;
  /** Letters whose new payload does not fit the schema, or is too large. */
  readonly misfits: Misfits;
  /** Letters with a number that JavaScript cannot hold: a function would change it. A merge patch keeps it. */
  readonly losesNumbers: Misfits;
  /** Jobs that are named and not dead. */
  readonly notDead: number;
  /** Ids without a job. */
  readonly missing: number;
}

/** The job types that this process knows, and how large a payload may be. */
export interface Known {
  readonly jobs: readonly JobDefinition[];
  readonly maxPayloadBytes: number;
}

/** Which letters: ids, or a filter in the form of the store. */
export type LetterTarget = { readonly ids: readonly string[] } | { readonly filter: LetterFilter };

/** The letters of a target a page at a time, in the order of enqueue; texts where there is no dead letter. */
async function* letterPages(
  store: Store,
  target: LetterTarget,
): AsyncGenerator<(DeadLetter | "missing" | "notDead")[]> {
  if ("ids" in target) {
    for (let from = 0; from < target.ids.length; from += PAGE)
      yield await Promise.all(target.ids.slice(from, from + PAGE).map((id) => letterOf(store, id)));
    return;
  }
  // A list in the order of enqueue leaves out the letters that come while it is read.
  for (let cursor: string | null = null; ; ) {
    const query = { ...target.filter, redriven: false, sort: "enqueued", limit: PAGE, cursor } as const;
    const page: Awaited<ReturnType<Store["deadLetters"]>> = await store.deadLetters(query);
    yield page.items.map((letter) => (letter.job.state === "dead" ? letter : "notDead"));
    if (page.next === null) return;
    cursor = page.next;
  }
}

async function letterOf(store: Store, id: string): Promise<DeadLetter | "missing" | "notDead"> {
  const { items } = await store.deadLetters({ jobId: id, limit: 1 });
  if (items[0]?.job.state === "dead") return items[0];
  return (await store.get([id]))[0] ? "notDead" : "missing";
}

/**
 * Makes new payloads for all letters of a target, each once, and hands over those that fit. Answers what the recipe does;
 * throws where it is at fault.
 */
export async function lookAtLetters(
  { store, ...known }: Known & { readonly store: Store },
  target: LetterTarget,
  recipe: OpenRecipe,
  onFit: (job: Job, payload: string) => Promise<void> = async () => undefined,
): Promise<RepairPreview> {
  const sum = new PreviewSum();
  for await (const page of letterPages(store, target))
    for (const letter of page) {
      if (typeof letter === "string") {
        sum.pass(letter);
        continue;
      }
      const made = await rewriteLetter(letter, recipe, known);
      sum.add(letter.job.id, made);
      if (made.kind === "fits") await onFit(letter.job, made.payload);
    }
  return sum.preview();
}

/** What a recipe makes of one letter. */
type Rewritten =
  | { readonly kind: "fits"; readonly payload: string }
  | { readonly kind: "unchanged" }
  | { readonly kind: "misfits" | "losesNumbers"; readonly issue: string };

/** Applies a recipe to a letter; throws where the recipe itself is at fault, or the type is unknown here. */
async function rewriteLetter(letter: DeadLetter, recipe: OpenRecipe, known: Known): Promise<Rewritten> {
  const { job } = letter;
  const definition = definitionOf(job, known);
  const lost = recipe.parses ? lostNumber(job.payload) : null;
  if (lost !== null) return { kind: "losesNumbers", issue: `a function would change the number ${lost.slice(0, 40)}` };
  let payload: string;
  try {
    payload = await recipe.rewrite(letter, roomFor(job, known));
  } catch (error) {
    if (!isRedriveError(error, "payload_too_large")) throw error;
    return { kind: "misfits", issue: error.message };
  }
  if (payload === job.payload) return { kind: "unchanged" };
  const issue = await issueOf(definition, payload);
  return issue === null ? { kind: "fits", payload } : { kind: "misfits", issue };
}

/** The bytes that a new payload may have: a payload that is over the limit already may stay as large as it is. */
function roomFor({ payload }: Job, { maxPayloadBytes }: Known): number {
  return Math.max(maxPayloadBytes, byteLength(payload));
}

/** The definition by which the payload of a job is checked; throws where this process does not know its type. */
function definitionOf({ type, version }: Job, { jobs }: Known): JobDefinition {
  const found = jobs.find((definition) => definition.type === type);
  if (found && found.version >= version) return found;
  const what = found ? `version ${version} of the type ${type}` : `the type ${type}`;
  const message = `No process here knows ${what}, so its new payload cannot be checked. Give its definition (\`jobs\` of createRedrive, \`--jobs FILE\` on the command line); nothing was written.`;
  throw new RedriveError("invalid_argument", message, { details: { type, version } });
}

/** Why a payload does not fit its type; null where it fits. */
async function issueOf(definition: JobDefinition, payload: string): Promise<string | null> {
  const [first] = await issuesOf(definition, payload);
  return first === undefined ? null : issueText(first);
}

/** What the schema of a type says of a payload, and where. */
interface PayloadIssue {
  readonly path: string;
  readonly message: string;
}

async function issuesOf({ type, input }: JobDefinition, payload: string): Promise<readonly PayloadIssue[]> {
  if (input === null) return [];
  try {
    await validated(input, JSON.parse(payload), type);
    return [];
  } catch (error) {
    const found = isMisfit(error, type) ? (error.details["issues"] as readonly PayloadIssue[]) : [];
    if (found.length > 0) return found;
    const said = error instanceof Error ? error.message : String(error);
    return [{ path: "", message: isMisfit(error, type) ? said : `the schema of ${type} failed: ${said}` }];
  }
}

/** The new payload of a job as it is stored; throws where it is no JSON, too large, or does not fit the type. */
export async function checkedPayload(job: Job, payload: string, known: Known): Promise<string> {
  const text = checkPayloadText(payload, roomFor(job, known));
  const issues = await issuesOf(definitionOf(job, known), text);
  const [first] = issues;
  if (first === undefined) return text;
  const issue = issueText(first);
  const message = `payload: expected input of ${job.type}; its schema says ${issue}; correct it; nothing was written`;
  throw new RedriveError("invalid_payload", message, {
    details: { id: job.id, issue, issues: issues.slice(0, ISSUES_MOST) },
  });
}

/** Most problems of one payload that an error names. */
const ISSUES_MOST = 20;

function issueText({ path, message }: PayloadIssue): string {
  return path === "" ? message : `${path}: ${message}`;
}

/** Adds up what a recipe makes of letters. */
class PreviewSum {
  readonly #counts = { letters: 0, fits: 0, unchanged: 0, notDead: 0, missing: 0 };
  readonly #named = { misfits: [] as Misfit[], losesNumbers: [] as Misfit[] };
  readonly #counted = { misfits: 0, losesNumbers: 0 };

  /** A job that has no dead letter. */
  pass(why: "notDead" | "missing"): void {
    this.#counts[why] += 1;
  }

  /** A letter and what the recipe made of it. */
  add(id: string, made: Rewritten): void {
    this.#counts.letters += 1;
    if (made.kind === "fits" || made.kind === "unchanged") this.#counts[made.kind] += 1;
    else {
      this.#counted[made.kind] += 1;
      if (this.#named[made.kind].length < NAMED_MOST) this.#named[made.kind].push({ id, issue: made.issue });
    }
  }

  /** The sums so far. */
  preview(): RepairPreview {
    const of = (kind: "misfits" | "losesNumbers"): Misfits => ({
      count: this.#counted[kind],
      named: this.#named[kind],
    });
    return { ...this.#counts, misfits: of("misfits"), losesNumbers: of("losesNumbers") };
  }
}
