// Advances time and work, one step after another, as far as the test asks. At every instant first the scheduled events
// happen, then due jobs run; time passes only when neither is left and no handler is at work.
import { AssertionError } from "node:assert";
import { formatDuration } from "../core/duration.ts";
import { RedriveError } from "../core/errors.ts";
import { planClaim } from "../core/claim-plan.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { realSystem } from "../system/real.ts";
import { grantsOf } from "../services/grants.ts";
import type { Life, Wish } from "./life.ts";
import type { ObservedRun, ObservedStore } from "./observed-store.ts";
import type { Ticks } from "./ticks.ts";
import { settled, type Timeline } from "./timeline.ts";

/** A goal that a call of the test waits for. */
export interface Goal {
  /** Its name in messages. */
  readonly name: string;
  readonly done: () => boolean;
  /** What may be taken on the way. */
  readonly wish: () => Wish;
  readonly onTaken?: (id: string) => void;
  /** The instant to stop at; without one, only the goal ends it. */
  readonly until?: number;
  /** Waiting for it makes no sense while there is no work. */
  readonly needsWork?: boolean;
  /** It waits for something outside the queue, which the fake clock does not touch: time stands still. */
  readonly isBusy?: () => boolean;
}

/** What the driver needs. */
export interface DriverOptions {
  readonly timeline: Timeline;
  readonly observed: ObservedStore;
  readonly jobs: readonly JobDefinition[];
  /** How long a handler may be at work, in real time, before it counts as waiting for the fake clock. */
  readonly patienceMs: number;
  readonly beginLife: () => Promise<Life>;
  readonly ticks: Ticks;
}

const RUNS_MOST = 10_000;
const LONGEST_MS = 365 * 86_400_000;
/** A single run that takes longer than this on the fake clock will not end. */
const LONGEST_RUN_MS = 86_400_000;
/** If work is due within this time our worker stays: the seconds until then cost less than a new worker. */
const LINGER_MS = 10_000;

/** Works towards goals. */
export class Driver {
  /** Workers that the test has started itself; while there are some, they do the work. */
  employed = 0;
  /** An error of our own worker; ends whatever is under way. */
  failure: { readonly error: unknown } | null = null;
  life: Life | null = null;
  closed = false;
  readonly #options: DriverOptions;
  readonly #serves: ReadonlySet<string>;
  readonly #goals = new Set<Goal>();
  #last: Promise<unknown> = Promise.resolve();
  /** Workers that wait for work were told of it at this instant. */
  #rung = false;

  constructor(options: DriverOptions) {
    this.#options = options;
    this.#serves = new Set(options.jobs.map(({ type }) => type));
  }

  /** What may be taken now, for all goals together; one job goes before the others. */
  wish(): Wish {
    const wishes = [...this.#goals].map((goal) => goal.wish());
    return wishes.find((wish) => typeof wish === "object") ?? (wishes.includes("any") ? "any" : "none");
  }

  taken(id: string): void {
    this.#rung = false;
    for (const goal of this.#goals) goal.onTaken?.(id);
  }

  /** Works until the goal is reached. */
  async drive(goal: Goal): Promise<void> {
    if (this.closed) throw new RedriveError("closed", "This Redrive was closed. Create a new one to continue.");
    let runs = 0;
    const counted: Goal = {
      ...goal,
      onTaken: (id) => {
        runs += 1;
        goal.onTaken?.(id);
      },
    };
    const latest = this.#options.timeline.now + LONGEST_MS;
    this.#goals.add(counted);
    try {
      for (let step: Step = "again"; step !== "end"; ) {
        step = await this.#exclusive(() => this.#turn(counted));
        if (step === "hold") await this.#hold(goal);
        if (runs > RUNS_MOST) throw this.#endless(goal, `${RUNS_MOST} runs`);
        if (goal.until === undefined && this.#options.timeline.now > latest) throw this.#endless(goal, "a year");
        this.#refuseEndlessRun(goal);
      }
    } finally {
      this.#goals.delete(counted);
      await this.#exclusive(() => this.#rest());
    }
  }

  /** Ends our own worker with everything it holds. */
  dismiss(): void {
    this.life?.crash();
    this.life = null;
    this.#options.observed.lost.clear();
  }

  /** True if a job can run at this instant. */
  isDue(): boolean {
    const { observed } = this.#options;
    if (observed.isDown) return false;
    if (observed.lost.size > 0) return true;
    const wish = this.wish();
    if (wish === "none") return false;
    return typeof wish === "object" ? observed.verbs.get([wish.id])[0]?.state === "queued" : this.#isPlanned();
  }

  /** No job is held, due or going to be due. */
  isIdle(): boolean {
    return !this.isDue() && this.isQuiet() && this.#nextDue() === Number.POSITIVE_INFINITY;
  }

  /** No worker holds a run. */
  isQuiet(): boolean {
    const { holdings, lost } = this.#options.observed;
    return holdings.size === 0 && lost.size === 0;
  }

  /** One action at a time, however many wait. */
  #exclusive<T>(act: () => Promise<T>): Promise<T> {
    const result = this.#last.then(act);
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #turn(goal: Goal): Promise<Step> {
    const { timeline, observed } = this.#options;
    await settled();
    if (this.failure) throw this.failure.error;
    if (await this.#tick()) return "again";
    if (goal.done()) return "end";
    if (goal.needsWork && this.isIdle()) return "hold";
    if (timeline.nextAt <= timeline.now) {
      timeline.fire();
      return "again";
    }
    const due = this.isDue();
    if (this.life?.spent || this.life?.alive === false) await this.#rest();
    if (due && observed.holdings.size === 0 && (await this.#offer())) return "again";
    // A call that advances time beside another call's run wants to see the effect on that run.
    if ((this.#atWork().length > 0 || goal.isBusy?.()) && this.#goals.size === 1) return "hold";
    if (!due && this.#nextDue() - timeline.now > LINGER_MS) await this.#rest();
    return this.#pass(goal);
  }

  /** Makes the jobs of schedules that are due at this instant; false if there are none. */
  async #tick(): Promise<boolean> {
    const { observed, ticks, timeline } = this.#options;
    if (this.wish() === "none" || observed.isDown || ticks.nextAt > timeline.now) return false;
    return ticks.look();
  }

  /** Wakes a worker for the work; false if all workers were told already. */
  async #offer(): Promise<boolean> {
    if (!this.life && this.employed === 0) this.life = await this.#options.beginLife();
    else if (this.#rung) return false;
    else this.#options.observed.ring();
    this.#rung = true;
    return true;
  }

  /** Advances time to the next event. */
  #pass(goal: Goal): Step {
    const { timeline, ticks } = this.#options;
    const { until = Number.POSITIVE_INFINITY } = goal;
    const tick = this.wish() === "none" ? 0 : ticks.nextAt;
    const next = Math.min(timeline.nextAt, this.#nextDue(), tick > timeline.now ? tick : Number.POSITIVE_INFINITY);
    this.#rung = false;
    if (next <= until && next !== Number.POSITIVE_INFINITY) {
      timeline.now = Math.max(timeline.now, next);
      return "again";
    }
    if (until === Number.POSITIVE_INFINITY) return "hold";
    timeline.now = Math.max(timeline.now, until);
    return "end";
  }

  /** Waits for handlers at work, in real time; one that takes too long counts as waiting for the fake clock. */
  async #hold(goal: Goal): Promise<void> {
    const { observed, patienceMs } = this.#options;
    const enough = new AbortController();
    const changed = observed.changed().then(() => "changed" as const);
    const end = await Promise.race([changed, realSystem.sleep(patienceMs, enough.signal)]);
    enough.abort();
    const atWork = this.#atWork();
    if (end === "changed" || (atWork.length === 0 && goal.isBusy?.())) return;
    if (atWork.length === 0) throw this.#endless(goal, "no work left to wait for");
    for (const holding of atWork) {
      holding.waits = true;
      if (goal.until === undefined && !this.#mayEnd(holding)) throw this.#stuck(goal, holding);
    }
  }

  /** Something on the fake clock can end the run: a timeout, a stuck limit, or a requested cancel. */
  #mayEnd({ id, type }: ObservedRun): boolean {
    const [job] = this.#options.observed.verbs.get([id]);
    const definition = this.#options.jobs.find((each) => each.type === type);
    if (!job || job.cancelRequested) return true;
    const stuckMs = job.limited ? job.stuckMs : (definition?.policy.stuckMs ?? job.stuckMs);
    return (stuckMs ?? definition?.policy.timeoutMs ?? null) !== null;
  }

  #atWork(): ObservedRun[] {
    return [...this.#options.observed.holdings.values()].filter(({ waits }) => !waits);
  }

  /** Ends our own worker where it has nothing to do. */
  async #rest(): Promise<void> {
    const { observed } = this.#options;
    const life = this.life;
    if (!life) return;
    const isBusy = [...observed.holdings.values()].some(({ worker }) => worker === life.worker.id);
    if (life.alive && !life.spent && (isBusy || observed.lost.size > 0)) return;
    if (life.alive) {
      void life.worker.stop({ within: 0 });
      await settled();
      life.crash();
    }
    this.life = null;
  }

  /** Asks core as a worker does. */
  #isPlanned(): boolean {
    const { verbs } = this.#options.observed;
    const { lanes } = verbs.lanes(null, 10_000);
    const grants = grantsOf(verbs.control(), this.#options.jobs, () => 0);
    return planClaim(lanes, { want: 1, suspects: 1, turn: 0, serves: this.#serves, queues: null, grants }).length > 0;
  }

  /** The next instant at which a job may become due, a pause ends or the store is back. */
  #nextDue(): number {
    const { observed, timeline } = this.#options;
    if (this.wish() === "none") return Number.POSITIVE_INFINITY;
    const { pauses } = observed.verbs.control();
    const times = observed.heads().flatMap((job) => {
      if (!this.#serves.has(job.type)) return [];
      const held = pauses.filter(({ kind, name, until }) => job[kind] === name && (until ?? Infinity) > timeline.now);
      return Math.max(job.runAt, observed.downUntil, ...held.map(({ until }) => until ?? Number.POSITIVE_INFINITY));
    });
    return Math.min(...times.filter((at) => at > timeline.now), Number.POSITIVE_INFINITY);
  }

  #refuseEndlessRun(goal: Goal): void {
    const { observed, timeline } = this.#options;
    if (goal.until !== undefined) return;
    const endless = [...observed.holdings.values()].find(({ since }) => timeline.now - since > LONGEST_RUN_MS);
    if (endless) throw this.#endless(goal, `job ${endless.id} of ${endless.type} has been running for a day`);
  }

  /** The error for a handler that nothing would ever end. */
  #stuck({ name }: Goal, { id, type }: ObservedRun): AssertionError {
    const spent = formatDuration(this.#options.patienceMs);
    const message = `${name}: the handler of ${type} (job ${id}) is still at work after ${spent} of real time, and has no timeout that the fake clock could reach. Give it one, or more \`patience\` if it does real work.`;
    return new AssertionError({ message });
  }

  /** The error for work that does not end, with the jobs that are left. */
  #endless(goal: Goal, after: string): AssertionError {
    const { verbs } = this.#options.observed;
    const left = (["running", "queued"] as const).flatMap((state) => verbs.list({ state, limit: 200 }).items);
    const shown = left.slice(0, 5).map(({ id, type, state, attempts, releases, generation }) => {
      const record = `${attempts} attempts, ${releases} releases${generation > 1 ? `, generation ${generation}` : ""}`;
      return `\n  ${type} ${id}: ${state}, ${record}`;
    });
    const more = left.length > shown.length ? `\n  and ${left.length - shown.length} more` : "";
    const list = left.length === 0 ? " Nothing waits." : ` Still there:${shown.join("")}${more}`;
    return new AssertionError({ message: `${goal.name} did not end: ${after}.${list}` });
  }
}

type Step = "again" | "hold" | "end";
