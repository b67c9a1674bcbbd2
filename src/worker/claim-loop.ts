// Takes work: carries out the steps that core/next-step.ts decides, and rests until a slot is free, work becomes due,
// or a hint comes. Polling alone finds all work; hints only make it faster.
//
//   state ──► nextStep ──► ask │ look │ take │ isolate ──► state …
//     ▲                 └► rest, which ends the turn
//     └──── a slot is free, a hint, the time is over
import { CLAIM_MOST } from "../core/in-hand.ts";
import { type ActiveLane, isSuspect } from "../core/lane.ts";
import {
  type LanesSeen,
  type Look,
  LOOK_AGAIN_MS,
  NEVER,
  NEW_TURN,
  nextStep,
  NOTHING_SEEN,
  type Rest,
  type WorkerStep,
  type Take,
  type Turn,
  wanted,
  type WorkerState,
  seenAfterClaim,
} from "../core/next-step.ts";
import { nextPauseEnd } from "../core/paused.ts";
import { jobsIn, type Quota } from "../core/claim-plan.ts";
import type { Services } from "../services/services.ts";
import type { ClaimAnswer, Control, LanePage } from "../store/store.ts";
import type { Contact } from "../store/store-contact.ts";
import type { WorkerCounts } from "../report/reporter.ts";
import type { AloneReservation } from "./alone-reservation.ts";
import type { WorkerDependencies, WorkerIdentity } from "./dependencies.ts";
import type { InFlight } from "./in-flight.ts";
import { LaneScan } from "./lane-scan.ts";
import { LastLanes } from "./last-lanes.ts";
import type { LastSigns } from "./last-signs.ts";
import { releaseLost } from "./lost-claim.ts";
import { Planning } from "./planning.ts";
import type { Presence } from "./presence.ts";
import type { Reaping } from "./reaping.ts";
import type { Settler } from "./settler.ts";
import type { WakeableSleep } from "./wakeable-sleep.ts";

/** The parts of a worker that claims need. */
export interface ClaimLoopDependencies extends WorkerDependencies {
  readonly contact: Contact;
  readonly self: WorkerIdentity;
  readonly sleep: WakeableSleep;
  readonly counts: WorkerCounts;
  /** Receives the signs of every look. */
  readonly signs: LastSigns;
  readonly inFlight: InFlight;
  readonly settler: Settler;
  readonly services: Services;
  readonly presence: Presence;
  readonly reaping: Reaping;
  readonly alone: AloneReservation;
  /** Fires when nothing more may be taken. */
  readonly claiming: AbortSignal;
}

/** A look over many lanes takes time: at most this share of the worker's time, within a limit on the wait for work. */
const LOOK_SHARE = 0.1;
const LOOK_LATEST_MS = 200;
/** Most lanes that are claimed from without a look. */
const BEFORE_MOST = 20;
/** Pauses and breakers are read again after this long, whatever the signs say: a restored database may repeat them. */
const CONTROL_MS = 60_000;

/** A loop that takes work until its signal fires. */
export class ClaimLoop {
  readonly #parts: ClaimLoopDependencies;
  readonly #planning: Planning;
  readonly #scan: LaneScan;
  readonly #lasts: LastLanes;
  #seen: LanesSeen = NOTHING_SEEN;
  #turn: Turn = NEW_TURN;
  /** When pauses and breakers were read, and whether looks report their changes. */
  #controlMs = NEVER;
  #hasSigns = false;
  #isUnanswered = false;
  #askedMs: number;

  constructor(parts: ClaimLoopDependencies) {
    const { store, system, jobs, settings } = parts;
    const served = { serves: new Set(jobs.map(({ type }) => type)), queues: settings.queues };
    this.#parts = parts;
    this.#planning = new Planning({ ...parts, served });
    this.#scan = new LaneScan(store, served);
    this.#lasts = new LastLanes(store, served, system);
    this.#askedMs = system.monotonic();
  }

  /** The result of the last look; null before the first. */
  get look(): Look | null {
    return this.#seen.look;
  }

  async run(): Promise<void> {
    const { contact, settings, system, sleep, claiming: signal } = this.#parts;
    while (!signal.aborted) {
      sleep.listen();
      this.#turn = NEW_TURN;
      let rest: Rest | null = null;
      try {
        const first = this.#decide();
        // A rest makes no call, so it says nothing about the store.
        rest = first.do === "rest" ? first : await contact.attempt("claim", () => this.#carryOut(first));
      } catch (error) {
        contact.complain("claim", error);
      }
      if (rest === null) this.#planning.control = null;
      if (rest?.forgets) this.#forget();
      if (rest?.ms !== 0) await sleep.rest(rest?.ms ?? settings.pollMs * (0.2 + system.random()), signal);
    }
    // Jobs of a last claim without an answer have not run, and the worker that finds them would charge them.
    if (this.#isUnanswered)
      await contact.attempt("claim", () => this.#ask()).catch((error: unknown) => contact.complain("claim", error));
  }

  /** Carries out one step after another until there is a rest. */
  async #carryOut(first: WorkerStep): Promise<Rest> {
    for (let step = first; ; step = this.#decide()) {
      if (step.do === "rest") return step;
      if (step.do === "ask") await this.#ask();
      else if (step.do === "look") await this.#look(step.want);
      else if (step.do === "isolate") await this.#isolate(step.lanes);
      else await this.#take(step);
    }
  }

  #decide(): WorkerStep {
    const { sleep, system } = this.#parts;
    const state = this.#state();
    const step = nextStep(state, system.random);
    const isBeginning = state.turn.stage === "begin" || state.turn.stage === "ask";
    const isForSlots = step.do === "rest" ? step.until === "either" : step.do === "take" && step.stage === "ordinary";
    // The next decision counts slots that become free in between, and a hint still counts.
    if (isBeginning || isForSlots) sleep.awaitsSlot = wanted(state) === 0;
    // A hint is for the next turn that does not wait for a slot; one that comes during a turn is for the turn after it.
    const isWaiting = step.do === "ask" || (step.do === "rest" && step.until === "slot");
    if (isBeginning && !isWaiting) sleep.isWoken = false;
    return step;
  }

  #state(): WorkerState {
    const { system, settings, store, inFlight, services, sleep, alone, reaping, isolation } = this.#parts;
    const seen = this.#seen;
    const spread = services.spread();
    const mayIsolate = isolation !== null && reaping.mayIsolate;
    return {
      nowMs: system.monotonic(),
      pollMs: settings.pollMs,
      leaseMs: settings.leaseMs,
      isRemote: store.remote,
      inHand: inFlight,
      isUnanswered: this.#isUnanswered,
      askedMs: this.#askedMs,
      isWoken: sleep.isWoken,
      seen,
      isControlKnown: this.#planning.control !== null,
      isSpread: spread !== null,
      spreadMost: spread?.most(Number.POSITIVE_INFINITY) ?? Number.POSITIVE_INFINITY,
      // A getter, because only rests need it, and there may be many lanes.
      get nextGrantMs() {
        return services.nextMs(seen.lanes);
      },
      // A job with one crash left that must run in this process runs alone, in one worker of the fleet at a time.
      isReserved: isolation === null && alone.isReserved,
      last: mayIsolate ? "isolate" : isolation === null && alone.mayTake ? "take" : null,
      turn: this.#turn,
    };
  }

  /** Marks the lanes as outdated. */
  #forget(): void {
    this.#seen = { ...this.#seen, atMs: NEVER };
  }

  /** After a claim without an answer: releases the jobs that are held without our knowledge. */
  async #ask(): Promise<void> {
    const { store, system, self, log, inFlight, settler } = this.#parts;
    this.#askedMs = system.monotonic();
    await releaseLost(store, self.id, log, (lease) => inFlight.holds(lease) || settler.isSettling(lease));
    this.#isUnanswered = false;
    this.#turn = { ...this.#turn, stage: "ask" };
  }

  async #look(want: number): Promise<void> {
    const { system, services, inFlight, alone, isolation } = this.#parts;
    const planning = this.#planning;
    const began = system.monotonic();
    const [control, page] = await this.#see(want);
    planning.control = control;
    const { nextRunAt, now } = page;
    const lanes = this.#scan.showsAll ? page.lanes : await this.#lasts.beside(page.lanes);
    const atMs = system.monotonic();
    const goodMs = Math.max(LOOK_AGAIN_MS, Math.min(LOOK_LATEST_MS, (atMs - began) / LOOK_SHARE));
    const before = lanes.length === 0 ? this.#seen.before : isPlain(lanes) ? lanes : [];
    await services.probe(lanes, control);
    // Work under a rate limit counts as due: its start comes with time. But no slots are reserved for it before.
    const mayStart = planning.plan(lanes, 1, 1).length > 0;
    const hasMore = page.next !== null;
    const suspect = planning.dueAt("suspect", lanes) !== null;
    const lastDueAt = planning.dueAt("last", lanes);
    const lastDueMs = lastDueAt === null ? null : Math.max(0, now - lastDueAt);
    const pauseEndsAt = nextPauseEnd(control.pauses, now);
    const isHeard = page.signs?.isHeard ?? false;
    const due = mayStart || hasMore;
    const look = { due, mayStart, hasMore, suspect, lastDueMs, nextRunAt, pauseEndsAt, now, isHeard };
    this.#seen = { lanes, look, atMs, goodMs, dropped: false, took: null, before };
    this.#turn = { ...this.#turn, stage: "look" };
    inFlight.reserve(suspect ? 1 : 0);
    if (isolation === null) await alone.look(lastDueMs, now);
  }

  /** Reads pauses and breakers, and the lanes; the former only if the look says that they have changed. */
  async #see(want: number): Promise<[Control, LanePage]> {
    const { store, system, contact, signs } = this.#parts;
    const asked = system.monotonic();
    const known = asked - this.#controlMs < CONTROL_MS ? this.#planning.control : null;
    const looking = this.#scan.look(want, { turn: this.#planning.turn, took: this.#seen.took });
    const [told, page] = await Promise.all([known && this.#hasSigns ? null : store.control(), looking]);
    this.#hasSigns = page.signs !== undefined;
    contact.told({ storeTime: page.now, asked, answered: system.monotonic() });
    signs.see(page);
    if (known && !told && page.signs?.control === known.version) return [{ ...known, now: page.now }, page];
    this.#controlMs = asked;
    return [told ?? (await store.control()), page];
  }

  /** Lets a child process run a job with one crash left. */
  async #isolate(lanes: readonly ActiveLane[]): Promise<void> {
    const planning = this.#planning;
    const [quota] = await planning.quotas(lanes, 1, 1);
    const lane = quota && lanes.find((one) => one.lane === quota.lane);
    this.#turn = { ...this.#turn, stage: "last", asked: 0 };
    if (lane && planning.control && !this.#parts.reaping.isolate(lane, planning.control.version))
      planning.control = null;
  }

  /** Takes what is planned; suspects go in a separate claim. */
  async #take(step: Take): Promise<void> {
    const { stage, lanes, slots } = step;
    const planning = this.#planning;
    const isSingle = stage === "suspect" || stage === "last";
    const planned =
      stage === "unseen" ? planning.plan(lanes, slots, 0) : await planning.quotas(lanes, slots, isSingle ? 1 : 0);
    const quotas = isSingle ? planned.slice(0, 1) : planned;
    // Lanes that had a turn in this claim go behind the others.
    if (stage === "unseen") planning.turn += quotas.length;
    else if (!isSingle) planning.turn += Math.max(1, new Set(quotas.map(({ lane }) => lane)).size);
    const { isSpentUp } = planning;
    const taken = await this.#claim(quotas, step, isSingle);
    this.#turn = { stage, taken: this.#turn.taken + taken, asked: quotas.length, isSpentUp };
  }

  async #claim(quotas: readonly Quota[], { slots, unlessBefore }: Take, isSingle: boolean): Promise<number> {
    const { store, system, self, inFlight, presence } = this.#parts;
    const { control } = this.#planning;
    if (!control || quotas.length === 0) return 0;
    const limit = Math.min(CLAIM_MOST, jobsIn(quotas, slots));
    this.#isUnanswered = true;
    const { jobs, refused } = await store.claim({
      worker: self.id,
      quotas,
      limit,
      nonce: system.nonce(),
      control: control.version,
      ...(unlessBefore !== undefined && { unlessBefore }),
      ...(isSingle ? { ticket: 0, startedThrough: self.startedThrough } : inFlight.tickets(limit, quotas)),
    });
    this.#isUnanswered = false;
    if (refused === "control") this.#planning.control = null;
    if (refused === "worker") await presence.comeBack();
    if (jobs.length > 0) this.#accept(jobs, isSingle);
    this.#seen = seenAfterClaim(this.#seen, quotas, jobs, limit);
    return jobs.length;
  }

  #accept(jobs: ClaimAnswer["jobs"], isSingle: boolean): void {
    const { counts, services, alone, inFlight, claiming } = this.#parts;
    counts.claimed += jobs.length;
    services.claimed(jobs);
    if (isSingle && jobs.some(({ crashes, maxCrashes }) => crashes >= maxCrashes - 1)) alone.taken();
    inFlight.accept(jobs, isSingle, claiming.aborted);
  }
}

/** True for a few lanes that can be claimed from in any order. */
function isPlain(lanes: readonly ActiveLane[]): boolean {
  const [first] = lanes;
  if (lanes.length > BEFORE_MOST) return false;
  return lanes.every(({ priority, kind, group }) => priority === first?.priority && group === null && !isSuspect(kind));
}
