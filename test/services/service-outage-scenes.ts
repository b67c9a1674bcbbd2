// Scenes of an outage on virtual time, of any length and on any store that runs on it: a service that answers or not, and
// the figures of what the work for it went through.
import type { ServiceOptions } from "../../src/core/service.ts";
import { defineJob, type JobDefinition } from "../../src/jobs/define-job.ts";
import { openBench, type VirtualStore } from "../support/virtual-bench.ts";
import type { Bench, Hired } from "../support/worker-bench.ts";

/** One call of the service, by its own clock. */
export interface Call {
  readonly at: number;
  readonly ok: boolean;
  readonly worker: number;
}

/** A service that can be down for all, or out of reach of some. */
export class FlakyService {
  readonly calls: Call[] = [];
  down = false;
  readonly #bench: Bench;
  readonly #tookMs: number;

  constructor(bench: Bench, tookMs = 20) {
    this.#bench = bench;
    this.#tookMs = tookMs;
  }

  /** Calls it; who does not reach it hears of that at once. */
  async call(worker: number, reached = true): Promise<void> {
    const ok = !this.down && reached;
    this.calls.push({ at: this.#bench.world.now, ok, worker });
    await this.#bench.sleep(reached ? this.#tookMs : 1);
    if (!ok) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  }

  since(at: number): Call[] {
    return this.calls.filter((call) => call.at >= at);
  }
}

/** A job type that calls the service for a worker of this number. */
export function quoteFor(service: FlakyService, worker: number, reached = true): JobDefinition {
  return defineJob("quote", { service: "pricing", maxAttempts: 3, run: () => service.call(worker, reached) });
}

/** Brings work at an even pace. */
export async function feed(
  bench: Bench,
  { seconds, perSecond }: { readonly seconds: number; readonly perSecond: number },
): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    await bench.addMany(perSecond, "quote", { service: "pricing", maxAttempts: 3 });
    await bench.add("mail");
    await bench.advance(1000);
  }
}

/** The most that lie in any window of a second. */
export function mostInASecond(times: readonly number[]): number {
  let most = 0;
  for (let from = 0, to = 0; to < times.length; to++) {
    while ((times[to] as number) - (times[from] as number) >= 1000) from++;
    most = Math.max(most, to - from + 1);
  }
  return most;
}

/** How many events of a kind the crew reported. */
export function heard(crew: readonly Hired[], kind: Parameters<Hired["heard"]>[0]): number {
  return crew.reduce((sum, each) => sum + each.heard(kind).length, 0);
}

/** What an outage cost. */
export interface OutageFigures {
  /** Attempts charged. */
  readonly charged: number;
  readonly deadLetters: number;
  /** Calls of the service while it was down. */
  readonly callsDown: number;
  /** Longest wait of a job that has nothing to do with the service, in milliseconds. */
  readonly otherMs: number;
  /** Jobs that had not completed at the end. */
  readonly left: number;
  /** How often the load on return was above the ramp, by seconds. */
  readonly aboveRamp: readonly string[];
  /** Seconds from the return to the last completion. */
  readonly recoveredS: number;
}

/** A service goes down under steady work and comes back. */
export async function outage({
  store,
  minutes,
  perSecond,
  services = {},
}: {
  readonly store: VirtualStore;
  readonly minutes: number;
  readonly perSecond: number;
  readonly services?: Record<string, ServiceOptions>;
}): Promise<OutageFigures> {
  const bench = await openBench(7, store);
  const pricing = new FlakyService(bench);
  const other: number[] = [];
  const mail = defineJob("mail", { run: (_, { job }) => void other.push(bench.world.now - job.createdAt) });
  const crew: Hired[] = [];
  for (const n of [1, 2])
    crew.push(await bench.employ([quoteFor(pricing, n), mail], { concurrency: 10, services, poll: "200ms" }));
  await feed(bench, { seconds: 10, perSecond });
  pricing.down = true;
  const downAt = bench.world.now;
  await feed(bench, { seconds: minutes * 60, perSecond });
  const callsDown = pricing.since(downAt).length;
  pricing.down = false;
  const backAt = bench.world.now;
  for (let tens = 0; tens < 6 * Math.max(1, minutes) && (await bench.store.count()).queued > 0; tens++)
    await bench.advance(10_000);
  const { queued, running } = await bench.store.count();
  const times = pricing.since(backAt).map(({ at }) => at);
  return {
    charged: heard(crew, "job.retried"),
    deadLetters: heard(crew, "job.dead"),
    callsDown,
    otherMs: Math.max(...other),
    left: queued + running,
    aboveRamp: aboveRamp(times, bench.world.now),
    recoveredS: Math.round(((times.at(-1) ?? backAt) - backAt) / 1000),
  };
}

/** Seconds in which there were more calls than a ramp from 3 a second allows that doubles every two seconds. */
function aboveRamp(times: readonly number[], end: number): string[] {
  const from = times[0] ?? end;
  const above: string[] = [];
  for (let second = 0; second < 18; second++) {
    const [start, stop] = [from + second * 1000, from + (second + 1) * 1000];
    const calls = times.filter((at) => at >= start && at < stop).length;
    // The probes that closed it come on top, and a late slot may fall into the next second.
    const most = 3 + Math.ceil(3 * 2 ** ((second + 1) / 2) * 1.05);
    if (calls > most) above.push(`second ${second}: ${calls}, at most ${most}`);
  }
  return above;
}
