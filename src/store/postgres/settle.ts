// Applies verdicts on Postgres, each only under its current lease: one statement for all verdicts of a kind, in the
// order of jobs, so that two settles never wait for each other in a circle. Writes the given charge, delay and reason;
// it computes none of them.
import { plainText } from "../../core/failure.ts";
import { type Failure, type Lease, TERM_NAMES, type Terms } from "../../core/job.ts";
import { LANE_KINDS } from "../../core/lane.ts";
import { isJobId } from "../../core/new-job.ts";
import { failedBy } from "../../core/recovery/outcome.ts";
import { failureText } from "../rows.ts";
import type { Settlement, Store } from "../store.ts";
import { termValues } from "../columns.ts";
import { isLease } from "../verbs.ts";
import { type Ask, type Context, type Placed, rounds } from "./context.ts";
import type { Parameter } from "./driver.ts";
import { isLocked } from "./errors.ts";
import type { OpenClaims } from "./open-claims.ts";
import { letterTeller, type SentEnd } from "./redrives.ts";
import { settleStatements } from "./settle-statements.ts";
import type { Waker } from "./wake.ts";

/** What is done with a verdict: what its kind says, or the job is deleted. */
type Kind = Settlement["verdict"]["kind"] | "forget" | "forgetRedriven";
type EndKind = "complete" | "cancel" | "retry" | "dead";

/** The verb that applies verdicts. */
export function settleVerb({ db, s }: Context, openClaims: OpenClaims, waker: Waker): Store["settle"] {
  const statements = settleStatements(s, waker);
  const tellLetters = letterTeller(s);
  /** Looks up the claims of runs that this process did not claim itself; a lease without a claim has no number. */
  const findForeign = async (numbered: readonly Numbered[]): Promise<void> => {
    const foreign = numbered.filter(({ seq }) => seq === NOBODYS);
    if (foreign.length === 0) return;
    const leases = foreign.map(({ item }) => item);
    const columns = [leases.map(({ id }) => id), leases.map(({ epoch }) => epoch), leases.map(({ nonce }) => nonce)];
    const found = (await db.ask(statements.find, ...columns)) as [string, number, string, number, boolean][];
    const runs = new Map(found.map(([id, epoch, nonce, ...run]) => [`${id} ${epoch} ${nonce}`, run]));
    for (const each of foreign) {
      const { id, epoch, nonce } = each.item;
      [each.seq, each.grouped] = runs.get(`${id} ${epoch} ${nonce}`) ?? [NOBODYS, false];
    }
  };
  return async ({ settlements, worker = null, startedThrough = 0 }) => {
    const legal: Numbered[] = [];
    for (const [at, item] of settlements.entries()) {
      if (!isLease(item) || !isJobId(item.id)) continue;
      const { seq = NOBODYS, grouped = false } = openClaims.runOf(item) ?? {};
      legal.push({ at, item, seq, grouped });
    }
    await findForeign(legal);
    const known = legal.filter(({ seq }) => seq !== NOBODYS);
    const by = [worker, startedThrough] as const;
    const { now, current, locked } = await applier(db, tellLetters, statements, by)(known);
    for (const { at, item } of legal) if (item.verdict.kind !== "progress" && !locked.has(at)) openClaims.settled(item);
    const isStale = (_: Settlement, at: number): boolean => !current.has(at) && !locked.has(at);
    const stale = current.size === settlements.length ? [] : settlements.filter(isStale).map(leaseOf);
    if (locked.size === 0) return { stale, now };
    return { stale, locked: settlements.filter((_, at) => locked.has(at)).map(leaseOf), now };
  };
}

/** What was applied, by index in the request, and what could not be applied now. */
interface Applied {
  readonly now: number;
  readonly current: ReadonlySet<number>;
  readonly locked: ReadonlySet<number>;
}

const NONE: ReadonlySet<number> = new Set();

/**
 * Applies verdicts for a worker. Only where another transaction holds a row, it checks which rows are held, and leaves
 * those out.
 */
function applier(
  db: Context["db"],
  tellLetters: ReturnType<typeof letterTeller>,
  statements: ReturnType<typeof settleStatements>,
  by: readonly [worker: string | null, startedThrough: number],
): (known: readonly Numbered[]) => Promise<Applied> {
  const apply = async (ask: Ask, [kind, places, says]: Step, current: Set<number>): Promise<number> => {
    const group = places.map(({ item }) => item);
    const columns = [...leaseColumns(places), ...COLUMNS[kind](group, places), ...(says ? termColumns(group) : [])];
    const [row] = await ask(says ? statements.said[kind as EndKind] : statements[kind], ...columns, ...by);
    const [now, done, long] = row as [number, number[] | null, number[] | null];
    for (const place of done ?? []) current.add(places[place - 1]?.at as number);
    // Their history is longer than what is kept.
    if (long && long.length > 0) await ask(statements.trim, long);
    return now;
  };
  const all = async (ask: Ask, known: readonly Numbered[], steps = stepsOf(known), locked = NONE): Promise<Applied> => {
    const current = new Set<number>();
    let now: number | null = null;
    for (const step of steps) {
      const at = await apply(ask, step, current);
      // Delays count from the time of their own statement, so none of them from before this.
      now ??= at;
    }
    const grouped = known.filter(holdsPlace);
    if (grouped.length > 0) await ask(statements.places, judged(grouped, current));
    await tellLetters(ask, sentEnds(known, current), by[0]);
    return { now: now ?? ((await ask(statements.none, ...by))[0]?.[0] as number), current, locked };
  };
  const free = async (ask: Ask, known: readonly Numbered[]): Promise<Applied> => {
    const forgotten = known.filter(({ item }) => isForgotten(kindOf(item)));
    const rows = await ask(statements.locked, seqsOf(known), seqsOf(forgotten));
    const seqs = new Set(rows.map(([seq]) => seq as number));
    const locked = new Set(known.filter(({ seq }) => seqs.has(seq)).map(({ at }) => at));
    const rest = known.filter(({ at }) => !locked.has(at));
    return all(ask, rest, stepsOf(rest), locked);
  };
  return async (known) => {
    const steps = stepsOf(known);
    const isOne = steps.length <= 1 && !known.some((each) => holdsPlace(each) || isRedriven(each.item));
    const usual = isOne ? all(db.ask, known, steps) : db.together((ask) => all(ask, known, steps));
    return usual.catch((error: unknown) => {
      if (!isLocked(error)) throw error;
      return db.together((ask) => free(ask, known));
    });
  };
}

/** The steps that are written one after the other: one verdict per job at a time, those of a kind together. */
function stepsOf(known: readonly Numbered[]): Step[] {
  return rounds(known, ({ id }) => id).flatMap((round) => byKind(round as Numbered[]));
}

function holdsPlace({ grouped, item }: Numbered): boolean {
  return grouped && item.verdict.kind !== "progress";
}

function seqsOf(of: readonly Numbered[]): number[] {
  return of.map(({ seq }) => seq);
}

function kindOf({ verdict, redriven }: Settlement): Kind {
  if (verdict.kind !== "complete" || verdict.keep !== false) return verdict.kind;
  return redriven ? "forgetRedriven" : "forget";
}

/** True for a verdict after which nothing of the job is left. */
function isForgotten(kind: Kind): boolean {
  return kind === "forget" || kind === "forgetRedriven";
}

/** The ends of jobs that were sent back to work, for their letters; a forgotten job has none any more. */
function sentEnds(known: readonly Numbered[], current: ReadonlySet<number>): SentEnd[] {
  const told = known.filter(({ at, item }) => isRedriven(item) && current.has(at));
  return told.map(({ seq, item }) => ({ seq, failed: failedBy(item.verdict) }));
}

/** True for a verdict that a letter waits for. */
function isRedriven(item: Settlement): boolean {
  return item.redriven === true && item.verdict.kind !== "progress" && !isForgotten(kindOf(item));
}

/** The number for a job that no claim has named under the lease. */
const NOBODYS = -1;

/** A settlement with its index and the number of its job. */
interface Numbered extends Placed<Settlement> {
  seq: number;
  /** The job holds a place in a group. */
  grouped: boolean;
}

/** The numbers of the jobs whose verdict counted. */
function judged(of: readonly Numbered[], current: ReadonlySet<number>): number[] {
  return seqsOf(of.filter(({ at }) => current.has(at)));
}

/** Verdicts of a kind, and whether they also write the terms by which their runs were judged. */
type Step = readonly [Kind, readonly Numbered[], says: boolean];

/** One completion inside a caller's transaction; false if its lease is no longer current. */
export function completeWithin(
  s: string,
): (ask: Ask, lease: Lease, result: string | null, said?: Terms) => Promise<boolean> {
  const { completeOne, said: saying } = settleStatements(s, null);
  const tellLetters = letterTeller(s);
  return async (ask, { id, epoch, nonce }, result, said) => {
    const statement = said ? saying.completeOne : completeOne;
    const [done] = await ask(statement, id, epoch, nonce, result, ...(said ? termValues(said) : []));
    if (!done) return false;
    const [seq, generation] = done as [number, number];
    if (generation > 1) await tellLetters(ask, [{ seq, failed: null }], null);
    return true;
  };
}

function leaseOf({ id, epoch, nonce }: Lease): Lease {
  return { id, epoch, nonce };
}

/** The verdicts of a round by kind, each in the order of their numbers. */
function byKind(round: readonly Numbered[]): Step[] {
  const kinds = new Map<string, [Kind, Numbered[], boolean]>();
  for (const each of round) {
    const kind = kindOf(each.item);
    const says = !isForgotten(kind) && saidWith(each.item) !== undefined;
    const name = says ? `${kind} said` : kind;
    const group = kinds.get(name);
    if (group) group[1].push(each);
    else kinds.set(name, [kind, [each], says]);
  }
  for (const [, group] of kinds.values()) group.sort((a, b) => a.seq - b.seq);
  return [...kinds.values()];
}

function saidWith({ verdict }: Settlement): Terms | undefined {
  return "said" in verdict ? verdict.said : undefined;
}

function termColumns(group: readonly Settlement[]): Parameter[] {
  return TERM_NAMES.map((term) => group.map((each) => (saidWith(each) as Terms)[term]));
}

function leaseColumns(group: readonly Numbered[]): Parameter[] {
  const nonces = [...new Set(group.map(({ item }) => item.nonce))];
  const claims = new Map(nonces.map((nonce, at) => [nonce, at + 1]));
  return [
    nonces,
    group.map(({ seq }) => seq),
    group.map(({ item }) => item.epoch),
    group.map(({ item }) => claims.get(item.nonce) as number),
  ];
}

type Of<K extends Kind> = Extract<Settlement["verdict"], { readonly kind: K }>;

function each<K extends Kind, T extends string | number | null>(
  group: readonly Settlement[],
  read: (verdict: Of<K>) => T,
): T[] {
  return group.map(({ verdict }) => read(verdict as Of<K>));
}

/** What each kind of verdict sends besides its leases, column by column. */
const COLUMNS: {
  readonly [K in Kind]: (group: readonly Settlement[], places: readonly Placed<Settlement>[]) => Parameter[];
} = {
  complete: (group) => [each<"complete", string | null>(group, ({ result }) => result)],
  forget: () => [],
  forgetRedriven: () => [],
  progress: (group) => [each<"progress", string>(group, ({ value }) => value)],
  cancel: () => [],
  release: (group) => [
    each<"release", number>(group, ({ delayMs }) => delayMs),
    each<"release", number | null>(group, ({ batchMost }) => batchMost ?? null),
  ],
  retry: (group) => [
    each<"retry", number>(group, ({ delayMs }) => delayMs),
    each<"retry", number>(group, ({ lane }) => LANE_KINDS.indexOf(lane)),
    each<"retry", number | null>(group, ({ batchMost }) => batchMost ?? null),
    ...blame(group),
  ],
  // Letters are in the order of their verdicts.
  dead: (group, places) => [
    places.map(({ at }) => at),
    each<"dead", string>(group, ({ reason }) => reason),
    ...blame(group),
  ],
};

function blame(group: readonly Settlement[]): Parameter[] {
  const failures = group.map(({ verdict }) => (verdict as Of<"retry" | "dead">).failure);
  const texts = failures.map(failureText);
  const stacks = failures.map(stackOf);
  const alike = texts.map((text, at) => at > 0 && text === texts[0] && stacks[at] === stacks[0]);
  return [
    each<"retry" | "dead", number>(group, ({ charge }) => charge.attempts),
    each<"retry" | "dead", number>(group, ({ charge }) => charge.crashes),
    texts.map((text, at) => (alike[at] ? null : text)),
    failures.map((failure) => failure.class),
    failures.map((failure) => plainText(failure.name)),
    failures.map((failure) => plainText(failure.message)),
    stacks.map((stack, at) => (alike[at] ? null : stack)),
    failures.map((failure) => plainText(failure.fingerprint)),
    alike,
  ];
}

function stackOf({ stack }: Failure): string | null {
  return stack === null ? null : plainText(stack);
}
