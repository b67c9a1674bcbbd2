// Writes verdicts to the store in shared commits. A stale lease is an answer like any other. An outage is waited out,
// because a lease stays valid until another process has judged the run. A verdict about a job that another open
// transaction holds waits separately.
import { textOf } from "../core/failure.ts";
import type { Lease } from "../core/job.ts";
import { isSettledBy, type Settled } from "../core/after-verdict.ts";
import { refusedVerdict } from "../core/verdict.ts";
import type { ClaimedJob, SettleAnswer, Settlement, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";
import { Bag } from "./bag.ts";
import type { Contact } from "../store/store-contact.ts";
import type { WorkerIdentity } from "./dependencies.ts";
import { type LockedVerdicts, openLocked } from "./locked-verdicts.ts";
import { isUnder } from "./run.ts";
import { type GroupCommit, groupCommit, type Weight, WRITE_LENGTH } from "../store/group-commit.ts";

/** Most verdicts per commit; bounds how long a heartbeat waits behind one. */
const GROUP = 1_000;

/** The length of a verdict's texts; a large group would be sent, and parsed, as one list. */
const WEIGHT: Weight<Entry> = { of: ({ settlement }) => lengthOf(settlement.verdict), most: WRITE_LENGTH };

/** Called with the result of a verdict, and the verdict that counted. */
export type Done = (settled: Settled, counted: Settlement["verdict"]) => void;

/** The completion that a handler made in a transaction, which may have been rolled back. */
export type Completion = Extract<Settlement["verdict"], { readonly kind: "complete" }>;

/** Takes verdicts and reports the result of each. */
export interface Settler {
  /**
   * Hands over a verdict about the run that the job was claimed for; `done` gets the result. Where the handler
   * completed the job in its own transaction and that committed, `done` learns that this completion counted instead.
   */
  settle(job: ClaimedJob, verdict: Settlement["verdict"], done: Done, completion?: Completion | null): void;
  idle(): Promise<void>;
  readonly size: number;
  /** How long the store has worked on verdicts so far, including those under way. */
  settlingMs(): number;
  /** How long the write under way has taken so far; it lasts until all of its answers were reported. */
  writingMs(): number;
  /** True while a verdict about this run is on its way. */
  isSettling(lease: Lease): boolean;
}

/** What a settler needs. */
export interface SettlerOptions {
  readonly store: Store;
  readonly system: Pick<System, "sleep" | "monotonic">;
  readonly contact: Contact;
  /** The identity that goes with every write. */
  readonly self: Readonly<Pick<WorkerIdentity, "id" | "startedThrough">>;
  /** Fires when unwritten verdicts may be dropped: the process ends and the leases will be reaped. */
  readonly giveUp: AbortSignal;
  readonly onError: (error: unknown) => void;
}

interface Entry {
  place: number;
  readonly job: ClaimedJob;
  readonly settlement: Settlement;
  readonly done: Done;
  readonly completion: Completion | null;
  /** It was sent before, and whether it counted is unknown. */
  unanswered: boolean;
}

/** A settler for one worker. */
export function openSettler(options: SettlerOptions): Settler {
  const underWay = new Bag<Entry>();
  const tell = (entry: Entry, settled: Settled, counted = entry.settlement.verdict): void => {
    underWay.delete(entry);
    locked.delete(entry);
    try {
      entry.done(settled, counted);
    } catch (error) {
      // A failing callback must not keep the verdicts of others from being written.
      options.onError(error);
    }
  };
  const writeAll = async (group: Entry[]): Promise<void> => {
    try {
      const answer = await send(group, options);
      const held = named(group, answer?.locked);
      for (const entry of held) locked.add(entry);
      const fates = await fatesOf([...named(group, answer?.stale)], options);
      const usual: Fate = [answer === null ? "unwritten" : "counted"];
      for (const entry of group) if (!held.has(entry)) tell(entry, ...(fates.get(entry) ?? usual));
    } catch (error) {
      if (group.length > 1) for (const entry of group) await writeAll([entry]);
      else for (const entry of group) await refuse(entry, error);
    }
  };
  const write = async (group: Entry[]) => void (await Promise.all(apart(group, options.store).map(writeAll)));
  const refuse = async (entry: Entry, error: unknown): Promise<void> => {
    options.onError(error);
    const { verdict } = entry.settlement;
    if (verdict.kind === "progress") return tell(entry, "stale");
    try {
      const settlement = { ...entry.settlement, verdict: refusedVerdict(verdict.kind, textOf(error)) };
      await send([{ ...entry, settlement }], options);
    } catch (again) {
      options.onError(again);
    }
    tell(entry, "unwritten");
  };
  const clock = openStopwatch(options.system.monotonic);
  const shared = groupCommit((group: Entry[]) => clock.during(() => write(group)), GROUP, 1, WEIGHT);
  const locked = openLocked(write, GROUP, (ms) => options.system.sleep(ms, options.giveUp));
  return {
    settle(job, verdict, done, completion = null) {
      const isProgress = verdict.kind === "progress";
      // Progress that comes after the verdict is too late, and must not be taken for the verdict's own answer.
      if (isProgress && underWay.some((entry) => entry.job === job)) return done("stale", verdict);
      const entry = { place: 0, job, settlement: settlementOf(job, verdict), done, completion, unanswered: false };
      if (!isProgress) underWay.add(entry);
      // The reports of a run are written in their order.
      (locked.some((each) => each.job === job) ? locked : shared).add(entry);
    },
    settlingMs: clock.read,
    writingMs: clock.current,
    isSettling: (lease) => underWay.some(({ job }) => isUnder(job, lease)),
    idle: () => bothIdle(shared, locked),
    get size() {
      return shared.size + locked.size;
    },
  };
}

function settlementOf({ id, epoch, nonce, group, generation }: ClaimedJob, verdict: Settlement["verdict"]): Settlement {
  const isVerdict = verdict.kind !== "progress";
  return { id, epoch, nonce, verdict, grouped: isVerdict && group !== null, redriven: isVerdict && generation > 1 };
}

/** Locked verdicts may be shared again, and the other way round. */
async function bothIdle(shared: GroupCommit<Entry>, locked: LockedVerdicts<Entry>): Promise<void> {
  for (await shared.idle(); locked.size > 0; await shared.idle()) await locked.idle();
}

interface Stopwatch {
  /** The total time. */
  read(): number;
  /** The time of the call under way. */
  current(): number;
  during(call: () => Promise<void>): Promise<void>;
}

/** Adds up the time of calls that come one after another, including the one under way. */
function openStopwatch(nowMs: () => number): Stopwatch {
  let totalMs = 0;
  let since: number | null = null;
  const current = (): number => (since === null ? 0 : nowMs() - since);
  const read = (): number => totalMs + current();
  return {
    read,
    current,
    async during(call) {
      since = nowMs();
      await call();
      totalMs = read();
      since = null;
    },
  };
}

/**
 * The verdicts by kind. A server writes each kind with a separate statement, at the same time, because together they
 * would be a transaction of several trips. Progress of a run comes before its verdict, so these stay together.
 */
function apart(group: Entry[], { remote }: Store): Entry[][] {
  if (!remote) return [group];
  const kinds = new Map<string, Entry[]>();
  for (const entry of group) {
    const { kind } = entry.settlement.verdict;
    if (kind === "progress") return [group];
    const alike = kinds.get(kind);
    if (alike) alike.push(entry);
    else kinds.set(kind, [entry]);
  }
  return [...kinds.values()];
}

/** The entries of the group that an answer names. */
function named(group: readonly Entry[], leases: readonly Lease[] = []): ReadonlySet<Entry> {
  const names = new Set(leases.map(name));
  return new Set(names.size > 0 ? group.filter(({ job }) => names.has(name(job))) : []);
}

/** Writes a group; null if it was given up before the store answered. */
async function send(group: readonly Entry[], options: SettlerOptions): Promise<SettleAnswer | null> {
  const { store, contact, self, giveUp } = options;
  const settlements = group.map(({ settlement }) => settlement);
  const request = { settlements, worker: self.id, startedThrough: self.startedThrough };
  const once = (): ReturnType<Store["settle"]> =>
    store.settle(request).catch((error: unknown) => {
      for (const entry of group) entry.unanswered = true;
      throw error;
    });
  const answer = await contact.insist("settle", once, giveUp);
  const held = answer?.locked?.length ?? 0;
  if (held > 0) contact.complain("settle", new Error(`${held} held by transactions that are still open`));
  return answer;
}

/** The result of a verdict, and the verdict that counted where it was another. */
type Fate = readonly [Settled, counted?: Settlement["verdict"]];

/**
 * The real results of refused verdicts. A verdict may have counted when it was first sent, with only the answer lost;
 * or the handler's own completion did. The store tells: the job is in the state in which that verdict would have left
 * it.
 */
async function fatesOf(refused: readonly Entry[], options: SettlerOptions): Promise<ReadonlyMap<Entry, Fate>> {
  const { store, contact, giveUp, onError } = options;
  const fates = new Map<Entry, Fate>(refused.map((entry) => [entry, ["stale"]]));
  const doubtful = refused.filter(
    ({ unanswered, completion, settlement }) => (unanswered || completion) && settlement.verdict.kind !== "progress",
  );
  if (doubtful.length === 0) return fates;
  const ask = (): ReturnType<Store["get"]> => store.get(doubtful.map(({ job }) => job.id));
  const found = await contact.insist("get", ask, giveUp).catch(onError);
  for (const [at, entry] of doubtful.entries()) {
    const now = found?.[at];
    const { unanswered, completion, settlement } = entry;
    const sent = [...(unanswered ? [settlement.verdict] : []), ...(completion ? [completion] : [])];
    const counted = sent.find((each) => now && each.kind !== "progress" && isSettledBy(now, entry.job, each));
    if (counted) fates.set(entry, ["counted", counted]);
    else if (now === null && sent.some(leavesNothing)) fates.set(entry, ["unanswered"]);
  }
  return fates;
}

/** True for a completion after which the job is deleted. */
function leavesNothing(verdict: Settlement["verdict"]): boolean {
  return verdict.kind === "complete" && verdict.keep === false;
}

function lengthOf(verdict: Settlement["verdict"]): number {
  if (verdict.kind === "complete") return verdict.result?.length ?? 0;
  if (verdict.kind === "progress") return verdict.value.length;
  if (verdict.kind !== "retry" && verdict.kind !== "dead") return 0;
  const { message, stack } = verdict.failure;
  // The message is sent twice: for people, and within the whole failure.
  return 2 * message.length + (stack?.length ?? 0);
}

/** With the nonce: a server that crashed may forget its last claims, and give out an epoch again. */
function name({ id, epoch, nonce }: Lease): string {
  return `${id} ${epoch} ${nonce}`;
}
