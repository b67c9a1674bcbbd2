// A day of runs of which some hang and some take their worker along, on virtual time: who works when, and what came of
// every job.
import type { State } from "../../src/core/job.ts";
import { PRESETS } from "../../src/core/policy.ts";
import { type RunRecord, runsOf } from "../../src/core/run-record.ts";
import { defineJob, type JobContext, type JobDefinition } from "../../src/jobs/define-job.ts";
import type { ClaimAnswer, Store } from "../../src/store/store.ts";
import { stuckService } from "../../src/upkeep/stuck-runs.ts";
import { startUpkeep } from "../../src/upkeep/upkeep.ts";
import { openReporter, zeroCounts } from "../../src/report/reporter.ts";
import { around, type Bench, forever, type Hired } from "../support/worker-bench.ts";

const SECOND = 1_000;
const MINUTE = 60_000;
/** The limit of a run; its retry is due four of them later. */
export const HOUR = 3_600_000;
const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
/** How often the fleet is awake while something happens, and while all that is left waits for hours. */
const BUSY_MS = 10 * SECOND;
const QUIET_MS = 20 * MINUTE;
/** Everything of one hour happens within so long: each try is found stuck up to 21 s after its limit. */
const SPAN_MS = 4 * MINUTE;

/** What a job is to do: hang so many times, kill its worker once, or just work. */
export interface Plan {
  readonly hangs: number;
  readonly kills: boolean;
}

/** Of every hundred, ten hang (one to five times) and five kill. */
export function planOf(n: number): Plan {
  const place = n % 100;
  return { hangs: place < 10 ? (place % 5) + 1 : 0, kills: place >= 10 && place < 15 };
}

/** Every other one that hangs does not listen, and comes back to life when its job is somebody else's. */
function isDeaf(n: number): boolean {
  return n % 2 === 0;
}

/** What became of one job. */
export interface Life {
  readonly n: number;
  readonly runs: readonly RunRecord[];
  /** How often its handler was called. */
  readonly calls: number;
}

/** One that works: its queue, how many at a time, and whether it does not see the limits of its runs. */
interface Post {
  readonly queue: string;
  readonly concurrency: number;
  readonly isBlind?: boolean;
}

const POSTS: readonly Post[] = [
  { queue: "default", concurrency: 250, isBlind: true },
  { queue: "default", concurrency: 250 },
];
/** Killers have a worker of their own, so that nobody else is charged for them and every count is known. */
const KILLERS: Post = { queue: "killers", concurrency: 1 };

/** The people of a day, and how time passes for them. */
class Fleet {
  readonly staff: Hired[] = [];
  readonly calls = new Map<string, number>();
  /** Runs that ended well long after they were given up, in the hands of a worker that waited for them. */
  returned = 0;
  readonly #bench: Bench;
  readonly #stops = new Map<Hired, () => Promise<unknown>>();

  constructor(bench: Bench) {
    this.#bench = bench;
  }

  /** The job, as a worker on this post has it. */
  definition({ isBlind = false }: Post, kill: () => void): JobDefinition {
    const { sleep } = this.#bench;
    return defineJob("scrape", {
      preset: "runs",
      run: async (input, { job, signal }: JobContext) => {
        const n = input as number;
        const call = (this.calls.get(job.id) ?? 0) + 1;
        this.calls.set(job.id, call);
        const { hangs, kills } = planOf(n);
        if (kills && call > 1) return job.id;
        if (kills) {
          kill();
          return forever();
        }
        if (call <= hangs) await sleep(HOUR + MINUTE, isDeaf(n) ? undefined : signal);
        if (signal.aborted && !isDeaf(n)) throw signal.reason;
        await sleep(MINUTE);
        if (call <= hangs && isBlind && isDeaf(n)) this.returned += 1;
        return job.id;
      },
    });
  }

  /** Puts a worker on a post, with the check that each has; whoever is killed is replaced a second later. */
  async hire(post: Post): Promise<void> {
    const { store, world } = this.#bench;
    const definition = this.definition(post, () => {
      hired.actor.crash();
      world.later(SECOND, () => void this.hire(post).catch((error: unknown) => world.fail(error)));
    });
    const through = mortal(post.isBlind ? blind(store) : store, () => hired.actor.alive);
    const { queue, concurrency } = post;
    // Whoever is blind to limits is patient with handlers, too.
    const hiring = { queues: [queue], concurrency, poll: "1m", ...(post.isBlind && { abortGrace: "5m" }) } as const;
    const hired = this.#bench.hire([definition], { ...hiring, through });
    this.staff.push(hired);
    const { system } = hired.actor;
    const told = { log: SILENT, events: { emit: () => undefined }, counts: zeroCounts(), definitions: new Map() };
    const report = openReporter({ ...told, now: system.now });
    const check = { store: through, system, report, graceMs: 10 * SECOND, policyOf: () => PRESETS.default };
    const records = { note: () => undefined, end: async () => undefined };
    const upkeep = startUpkeep([stuckService(check)], {
      system,
      log: SILENT,
      records,
      contact: { isAway: () => true },
    });
    this.#stops.set(hired, () => Promise.all([hired.worker.stop({ withinMs: 0 }), upkeep.stop()]));
    await hired.worker.start();
  }

  /**
   * Lets time pass for a fleet that sleeps and is awake only now and then, as laptops do: whoever is awake looks around
   * every second, and that for a whole day is all that would take long here.
   */
  async pass(ms: number, everyMs: number): Promise<void> {
    const { world, advance } = this.#bench;
    for (const end = world.now + ms; world.now < end; ) {
      const napMs = Math.min(everyMs, end - world.now);
      for (const { actor } of this.staff) if (actor.alive) actor.pause(napMs);
      await advance(napMs);
    }
  }

  /** Sends everybody home. */
  async stop(): Promise<void> {
    for (const [{ actor }, stop] of this.#stops) if (actor.alive) await this.#bench.finish(stop());
  }
}

/** Plays the day; answers what became of each job, what waited after the first hour, and who worked. */
export async function playDay(bench: Bench, jobs: number) {
  const fleet = new Fleet(bench);
  await bench.addMany(
    jobs,
    fleet.definition(KILLERS, () => undefined),
    (n) => ({ payload: String(n), queue: planOf(n).kills ? KILLERS.queue : "default" }),
  );
  for (const post of [...POSTS, KILLERS]) await bench.finish(fleet.hire(post));
  // Five tries: each begins, has its limit an hour later, and is tried again four hours after that.
  let waiting: readonly Life[] = [];
  for (let round = 0; round < 5; round++) {
    await fleet.pass(SPAN_MS, BUSY_MS);
    await fleet.pass(HOUR - SPAN_MS - BUSY_MS, QUIET_MS);
    await fleet.pass(BUSY_MS + SPAN_MS, BUSY_MS);
    if (round === 0) waiting = await livesIn(bench.store, fleet.calls, "queued");
    await fleet.pass(4 * HOUR - SPAN_MS, QUIET_MS);
  }
  await fleet.stop();
  const { staff, returned } = fleet;
  return { lives: await livesIn(bench.store, fleet.calls), waiting, staff, returned };
}

async function livesIn(store: Store, calls: ReadonlyMap<string, number>, state?: State): Promise<Life[]> {
  const lives: Life[] = [];
  for (let cursor: string | null = null; ; ) {
    const page: Awaited<ReturnType<Store["list"]>> = await store.list({ limit: 200, cursor, ...(state && { state }) });
    for (const job of page.items) {
      const runs = runsOf(job, await store.history(job.id));
      lives.push({ n: Number(job.payload), runs, calls: calls.get(job.id) ?? 0 });
    }
    if (page.next === null) return lives;
    cursor = page.next;
  }
}

/** A worker that does not see the limits of its runs, as one whose event loop is blocked. */
function blind(store: Store): Store {
  return around(store, async (verb, next) => {
    const answer = await next();
    if (verb !== "claim") return answer;
    const { jobs, ...rest } = answer as ClaimAnswer;
    return { ...rest, jobs: jobs.map((job) => ({ ...job, stuckMs: null })) };
  });
}

/** The store of somebody who can die: the dead ask for nothing and hear nothing. */
function mortal(store: Store, isAlive: () => boolean): Store {
  return around(store, async (_, next) => {
    if (!isAlive()) return forever();
    const answer = await next();
    return isAlive() ? answer : forever();
  });
}
