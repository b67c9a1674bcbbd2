// Takes work. Looks which lanes have something due, has core plan the quotas, claims, and sleeps until a slot is free,
// something falls due, or a hint comes; polling is the truth that all hints only hurry.
//
//   look → plan → claim → hand over ─┐
//    ▲                               │ nothing due: rest until the next due time, at most one poll
//    └──── a slot is free, a hint ◄──┘ hands full: rest until a slot is free
import { type ActiveLane, firstLane, isSuspect, type LaneKind } from "../core/lane.ts";
import { nextPauseEnd } from "../core/paused.ts";
import { jobsByLane, jobsIn, plan, type Quota } from "../core/plan.ts";
import type { Control, LanePage } from "../store/store.ts";
import { openSleep } from "./wakeable-sleep.ts";
import type { ClaimLoopOptions } from "./claim-options.ts";
import { LastLanes } from "./last-lanes.ts";
import { CLAIM_MOST } from "./prefetch.ts";
import { LaneScan } from "./lane-scan.ts";

/** Plans in one turn, where what comes first turns out to be used up. */
const PASSES = 3;
/** After this long the lanes are looked at again even though claims still come back full. */
const LOOK_AGAIN_MS = 100;
/** Where there are so many lanes that a look takes its time, it may take this share of ours, but nobody waits longer. */
const LOOK_SHARE = 0.1;
const LOOK_LATEST_MS = 200;
/** Lanes that are taken from without a look. */
const BEFORE_MOST = 20;
/** What holds work back is read again after this long, whatever signs say: a database that was set back may repeat them. */
const CONTROL_MS = 60_000;
/** A process that is woken rests up to this share of a poll longer, each time another one. */
const HEARD_MORE = 1.6;
const NEVER = Number.NEGATIVE_INFINITY;

type Lower = (grants: ReadonlyMap<string, number>) => ReadonlyMap<string, number>;

/** A loop that takes work until its signal fires. */
export class ClaimLoop {
  readonly #options: ClaimLoopOptions;
  readonly #bell: ReturnType<typeof openSleep>;
  #turn = 0;
  #control: Control | null = null;
  /** When that was read, and whether looks tell of its changes. */
  #controlMs = NEVER;
  #hasSigns = false;
  #lanes: readonly ActiveLane[] = [];
  /** Where there was work when there last was some, if nothing speaks against taking more from there unseen. */
  #before: readonly ActiveLane[] = [];
  #woken = false;
  #lookedAt = NEVER;
  #lookAgainMs = LOOK_AGAIN_MS;
  /** Lanes of groups were asked since the look and are not in the picture any more. */
  #dropped = false;
  /** The highest priority of which something was taken since the look; null for nothing. */
  #took: number | null = null;
  readonly #survey: LaneScan;
  readonly #lasts: LastLanes;
  /** The grants without what is known to be used up for now. */
  readonly #withoutSpent: Lower = (grants) => this.#options.spread()?.spentUp(grants) ?? grants;
  #handsFull = false;
  /** All that is due is spread over time, and none of it may start now. */
  #isSpentUp = false;
  /** The answer to our last claim was lost. */
  #unknown = false;
  #askedForUnknownAt: number;

  constructor(options: ClaimLoopOptions) {
    this.#options = options;
    this.#bell = openSleep(options.system);
    this.#survey = new LaneScan(options.store, options.served);
    this.#lasts = new LastLanes(options.store, options.served, options.system);
    this.#askedForUnknownAt = options.system.monotonic();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { contact, settings, system } = this.#options;
    while (!signal.aborted) {
      this.#bell.listen();
      let waitMs: number | null = null;
      try {
        // Whoever asks nothing hears nothing of the store.
        waitMs = this.#isFull() ? settings.pollMs : await contact.attempt("claim", () => this.#round());
      } catch (error) {
        contact.complain("claim", error);
      }
      if (waitMs === null) this.#control = null;
      if (waitMs !== 0) await this.#bell.rest(waitMs ?? settings.pollMs * (0.2 + system.random()), signal);
    }
  }

  /** Work may be due: look again. */
  wake(): void {
    if (this.#handsFull) return;
    this.#woken = true;
    this.#bell.ring();
  }

  /** Go on, whatever we rest for. */
  ring(): void {
    this.#bell.ring();
  }

  /** We rest because our hands are full, not because nothing is due. */
  get handsFull(): boolean {
    return this.#handsFull;
  }

  /** A slot is free: go on where only that was missing. */
  nudge(): void {
    if (this.#handsFull) this.#bell.ring();
  }

  /** Our last claim may have been carried out without our knowledge. Once in a lease anyway: it may reach the store later. */
  #isInDoubt(): boolean {
    const { system, settings } = this.#options;
    return this.#unknown || system.monotonic() - this.#askedForUnknownAt >= settings.leaseMs;
  }

  /** True while there is nothing to ask the store for, because our hands are full. */
  #isFull(): boolean {
    const { suspect, last } = this.#options.wantSuspect();
    this.#handsFull = this.#wanted() === 0;
    return this.#handsFull && !suspect && !last && !this.#options.isReserved() && !this.#isInDoubt();
  }

  /** One turn; returns how long to rest, 0 for not at all. */
  async #round(): Promise<number> {
    const { system, settings, isReserved, onUnknown } = this.#options;
    const { pollMs } = settings;
    if (this.#isInDoubt()) {
      this.#askedForUnknownAt = system.monotonic();
      await onUnknown();
      this.#unknown = false;
    }
    if (this.#isFull()) return pollMs;
    if ((await this.#takeAtOnce()) > 0) return 0;
    const idleMs = await this.#look();
    if (idleMs > 0) return idleMs;
    const suspects = await this.#takeSuspect();
    const wanted = this.#wanted();
    this.#handsFull = wanted === 0;
    // Suspects follow one another, and somebody else may take the job we keep our hands free for: look again soon.
    const soon = isReserved() || this.#lanes.some((lane) => isSuspect(lane.kind));
    const soonMs = soon ? Math.min(LOOK_AGAIN_MS, this.#options.nextGrantMs(this.#lanes) ?? pollMs) : pollMs;
    if (this.#handsFull) return suspects > 0 ? 0 : Math.min(pollMs, soonMs);
    const ordinary = this.#lanes.filter((lane) => !isSuspect(lane.kind));
    const quotas = await this.#quotas(ordinary, wanted, false);
    // Whoever had a turn in this claim goes behind the others.
    this.#turn += Math.max(1, new Set(quotas.map(({ lane }) => lane)).size);
    const taken = await this.#take(quotas, wanted, false);
    if (suspects + taken > 0 || this.#control === null) return 0;
    if (this.#hasMore(quotas)) return 0;
    const againMs = this.#isSpentUp ? pollMs : LOOK_AGAIN_MS;
    return Math.min(pollMs, againMs, this.#options.nextGrantMs(this.#lanes) ?? LOOK_AGAIN_MS);
  }

  /**
   * Somebody woke us: what they enqueued is mostly where there was work before, and a look would only tell us so. Nothing
   * is taken if something of a higher priority waits. Not where a look costs less than a claim in vain, and not in the
   * middle of work.
   */
  async #takeAtOnce(): Promise<number> {
    const { store, isReserved, spread } = this.#options;
    const isHurried = this.#woken && store.remote && this.#lookedAt === NEVER && !isReserved() && !spread();
    this.#woken = false;
    const wanted = isHurried ? this.#wanted() : 0;
    if (wanted === 0) return 0;
    const quotas = this.#plan(this.#before, wanted, 0);
    this.#turn += quotas.length;
    return this.#take(quotas, wanted, false, firstLane(0, this.#before[0]?.priority ?? 0));
  }

  /** How many ordinary jobs to take now. */
  #wanted(): number {
    const want = this.#options.want();
    return want === 0 ? 0 : (this.#options.spread()?.most(want) ?? want);
  }

  /** Looks at the lanes; returns how long there will be nothing to do. */
  async #look(): Promise<number> {
    const { system, settings, onLook } = this.#options;
    const began = system.monotonic();
    if (this.#control && began - this.#lookedAt < this.#lookAgainMs) return 0;
    const [control, page] = await this.#see();
    this.#control = control;
    const { nextRunAt, now, next } = page;
    const lanes = this.#survey.showsAll ? page.lanes : await this.#lasts.beside(page.lanes);
    this.#lanes = lanes;
    if (lanes.length > 0) this.#before = isPlain(lanes) ? lanes : [];
    this.#dropped = false;
    this.#took = null;
    this.#lookedAt = system.monotonic();
    const dearMs = (this.#lookedAt - began) / LOOK_SHARE;
    this.#lookAgainMs = Math.max(LOOK_AGAIN_MS, Math.min(LOOK_LATEST_MS, dearMs));
    await this.#options.probe(lanes, control);
    // What is spread over time counts as due: its turn comes by itself. But nobody keeps hands free for it before.
    const due = this.#plan(lanes, 1, 1).length > 0;
    const suspect = this.#dueAt("suspect") !== null;
    const lastDueAt = this.#dueAt("last");
    const lastDueMs = lastDueAt === null ? null : Math.max(0, now - lastDueAt);
    await onLook({ due: due || next !== null, suspect, lastDueMs, nextRunAt, now });
    if (due) return 0;
    this.#lookedAt = NEVER;
    if (next !== null) return lanes.length === 0 ? 1 : LOOK_AGAIN_MS;
    // Where whoever makes work due wakes us, and a look is a trip to a server, there is less need to look.
    const pollMs = settings.pollMs * (page.signs?.isHeard ? 1 + HEARD_MORE * system.random() : 1);
    const grantedMs = this.#options.nextGrantMs(lanes) ?? pollMs;
    // Work falls due at its time, and what was paused with the end of its pause.
    const dueMs = [nextRunAt, nextPauseEnd(control.pauses, now)].map((at) => (at === null ? pollMs : at - now));
    return Math.max(1, Math.min(pollMs, grantedMs, ...dueMs));
  }

  /** Since when a suspect of the kind has been due that may start now; null where none may. */
  #dueAt(kind: LaneKind): number | null {
    const lanes = ofKind(this.#lanes, kind);
    const open = jobsByLane(this.#plan(lanes, lanes.length, lanes.length, this.#withoutSpent));
    const since = lanes.filter(({ lane }) => open.has(lane)).map(({ headRunAt }) => headRunAt);
    return since.length === 0 ? null : Math.min(...since);
  }

  /** What holds work back, and the lanes: both anew, unless the look tells that the former is as it was. */
  async #see(): Promise<[Control, LanePage]> {
    const { store, system, contact } = this.#options;
    const asked = system.monotonic();
    const known = asked - this.#controlMs < CONTROL_MS ? this.#control : null;
    const looking = this.#survey.look(this.#options.want(), { turn: this.#turn, took: this.#took });
    const [told, page] = await Promise.all([known && this.#hasSigns ? null : store.control(), looking]);
    this.#hasSigns = page.signs !== undefined;
    contact.told({ storeTime: page.now, asked, answered: system.monotonic() });
    this.#options.signs.see(page);
    if (known && !told && page.signs?.control === known.version) return [{ ...known, now: page.now }, page];
    this.#controlMs = asked;
    return [told ?? (await store.control()), page];
  }

  /** What to take; of what is spread over time only what was withdrawn for the lanes that this claim can reach. */
  async #quotas(lanes: readonly ActiveLane[], want: number, single: boolean): Promise<Quota[]> {
    const spread = this.#options.spread();
    const suspects = single ? 1 : 0;
    this.#isSpentUp = false;
    if (!spread || lanes.length === 0) return this.#plan(lanes, want, suspects);
    // What turns out to be used up does not hide what is behind it.
    for (let pass = 0; pass < PASSES; pass++) {
      const wished = this.#plan(lanes, want, suspects, this.#withoutSpent);
      const reached = jobsByLane(wished);
      this.#isSpentUp = reached.size === 0;
      if (this.#isSpentUp) break;
      const within = lanes.filter(({ lane }) => reached.has(lane));
      const most = Math.max(want, jobsIn(wished, want));
      await spread.withdraw(within, reached, most, lanes);
      if (spread.covers(within, reached, most, suspects)) return wished;
      const quotas = this.#plan(within, want, suspects, (grants) => spread.lowered(grants, within, suspects));
      if (quotas.length > 0) return quotas;
    }
    return [];
  }

  #plan(lanes: readonly ActiveLane[], want: number, suspects: number, lower: Lower = (grants) => grants): Quota[] {
    if (!this.#control || lanes.length === 0) return [];
    const appetite = this.#options.appetite(this.#control);
    return plan(lanes, {
      ...this.#options.served(),
      ...appetite,
      grants: lower(appetite.grants),
      want,
      suspects,
      turn: this.#turn,
    });
  }

  /** Takes one suspect, in a claim of its own; one with its last crash left goes elsewhere where there is a way to. */
  async #takeSuspect(): Promise<number> {
    const { wantSuspect, isolate } = this.#options;
    if (wantSuspect().last) {
      const [last] = await this.#single("last");
      if (last && !isolate) return this.#take([last], 1, true);
      const lane = last && this.#lanes.find((one) => one.lane === last.lane);
      if (lane && isolate && this.#control && !isolate(lane, this.#control.version)) this.#control = null;
    }
    return wantSuspect().suspect ? this.#take(await this.#single("suspect"), 1, true) : 0;
  }

  /** The quota of one suspect of the kind. */
  async #single(kind: LaneKind): Promise<Quota[]> {
    const lanes = ofKind(this.#lanes, kind);
    return lanes.length === 0 ? [] : (await this.#quotas(lanes, 1, true)).slice(0, 1);
  }

  async #take(quotas: readonly Quota[], slots: number, single: boolean, unlessBefore?: number): Promise<number> {
    const { store, system, worker, tickets, startedThrough, accept, onGivenUp } = this.#options;
    if (!this.#control || quotas.length === 0) return 0;
    const limit = Math.min(CLAIM_MOST, jobsIn(quotas, slots));
    this.#unknown = true;
    const { jobs, refused } = await store.claim({
      worker: worker(),
      quotas,
      limit,
      nonce: system.nonce(),
      control: this.#control.version,
      ...(unlessBefore !== undefined && { unlessBefore }),
      ...(single ? { ticket: 0, startedThrough: startedThrough() } : tickets(limit, quotas)),
    });
    this.#unknown = false;
    if (refused === "control") this.#control = null;
    if (refused === "worker") await onGivenUp();
    if (jobs.length > 0) accept(jobs, single);
    for (const { priority } of jobs) this.#took = Math.max(priority, this.#took ?? priority);
    this.#drop(quotas);
    // Whatever was not there when we asked makes the picture of the lanes old.
    const asked = quotas.reduce((sum, quota) => sum + quota.limit, 0);
    const isShort = jobs.length < Math.min(limit, asked);
    if (isShort && !(this.#dropped && this.#lanes.length > 0)) this.#lookedAt = NEVER;
    return jobs.length;
  }

  /** A lane of a group that was asked has given what it may; the next look shows what it may give then. */
  #drop(quotas: readonly Quota[]): void {
    const asked = new Set(quotas.map(({ lane }) => lane));
    const left = this.#lanes.filter(({ group, lane }) => group === null || !asked.has(lane));
    if (left.length === this.#lanes.length) return;
    this.#lanes = left;
    this.#dropped = true;
  }

  /** After a claim that took nothing: true if groups that were not asked yet are left, or a look will show more of them. */
  #hasMore(asked: readonly Quota[]): boolean {
    if (!this.#dropped) return false;
    if (asked.length > 0) return this.#lanes.length > 0;
    this.#lookedAt = NEVER;
    return this.#took !== null;
  }
}

function ofKind(lanes: readonly ActiveLane[], kind: LaneKind): readonly ActiveLane[] {
  return lanes.filter((lane) => lane.kind === kind);
}

/** True for a few lanes that can be taken from in any order. */
function isPlain(lanes: readonly ActiveLane[]): boolean {
  const [first] = lanes;
  if (lanes.length > BEFORE_MOST) return false;
  return lanes.every(({ priority, kind, group }) => priority === first?.priority && group === null && !isSuspect(kind));
}
