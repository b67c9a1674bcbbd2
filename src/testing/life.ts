// One life of the test's own worker: the real worker with one slot, on the fake clock, in a process that can die. It
// gets work only as far as the test asks.
import { assemble } from "../redrive.ts";
import type { RedriveOptions } from "../redrive-options.ts";
import type { RedriveWorker } from "../worker/redrive-worker-api.ts";
import type { RedriveEvent } from "../report/events.ts";
import type { Store } from "../store/store.ts";
import { VERB_NAMES } from "../store/verb-facts.ts";
import type { System } from "../system/system.ts";
import { fakeSystem, seededDice } from "./fake-system.ts";
import type { Faults, Faulty } from "./faults.ts";
import { nameOf, type ObservedStore } from "./observed-store.ts";
import type { Timeline } from "./timeline.ts";

/** What a worker may take next: what its plan says, one job, or nothing. */
export type Wish = "any" | "none" | { readonly id: string };

/** What a life needs. */
export interface LifeOptions {
  readonly options: Omit<RedriveOptions, "store">;
  readonly observed: ObservedStore;
  readonly timeline: Timeline;
  readonly faults: Faults;
  readonly seed: number;
  /** Its number, which is its process id as well. */
  readonly pid: number;
  readonly isAlive: (pid: number) => boolean;
  readonly wish: () => Wish;
  readonly onTaken: (id: string) => void;
  readonly onEvent: (event: RedriveEvent) => void;
  readonly onError: (error: unknown) => void;
}

/** A worker that lives. */
export interface Life {
  readonly worker: RedriveWorker;
  readonly alive: boolean;
  /** Its slot is lost to a handler that ignores its abort signal. */
  readonly spent: boolean;
  /** Its process dies with everything in it. */
  crash(): void;
}

/** Begins a life. */
export async function beginLife(parts: LifeOptions): Promise<Life> {
  const { options, observed, timeline, faults, seed, pid, isAlive, onEvent, onError } = parts;
  const owner = { alive: true };
  const system = fakeSystem(timeline, seededDice(seed, `worker ${pid}`), owner);
  const crash = (): void => {
    owner.alive = false;
    observed.lose(worker.id);
  };
  const faulty = { system, crash, waits: waitsIn(observed) };
  const redrive = await assemble(
    {
      ...options,
      jobs: (options.jobs ?? []).map((job) => faults.around(job, faulty)),
      store: storeOf(parts, owner, system),
    },
    // The ticks of the test drive redrive runs; a worker that dies with the lease of one would delay it.
    { system, process: { pid, host: "test", isAlive }, drives: false },
  );
  let spent = false;
  redrive.on("*", (event) => {
    if (event.kind === "worker.spent") spent = true;
    if (owner.alive) onEvent(event);
  });
  const worker = redrive.worker({ concurrency: 1 });
  worker.start().catch(onError);
  return {
    worker,
    crash,
    get alive() {
      return owner.alive;
    },
    get spent() {
      return spent;
    },
  };
}

/** The store as this worker sees it: it shows what is asked for, one job at a time, and never answers a dead worker. */
function storeOf(parts: LifeOptions, owner: { readonly alive: boolean }, system: System): Store {
  const { observed } = parts;
  const { store } = observed;
  const living = <T>(answer: T): T | Promise<never> => (owner.alive ? answer : new Promise(() => undefined));
  const verbs = Object.fromEntries(
    VERB_NAMES.map((verb) => {
      const call = store[verb] as (...args: unknown[]) => Promise<unknown>;
      return [verb, async (...args: unknown[]) => living(owner.alive ? await call(...args) : null)];
    }),
  ) as unknown as Store;
  return {
    ...store,
    ...verbs,
    async lanes(after, limit) {
      const wish = parts.wish();
      const lane = typeof wish === "object" ? observed.bringForward(wish.id) : null;
      const page = await verbs.lanes(after, limit);
      if (wish === "any") return page;
      return { ...page, lanes: page.lanes.filter((each) => each.lane === lane), next: null, nextRunAt: null };
    },
    async claim(request) {
      // A turn of the clock for every claim: a job that is due again at once must not keep all others waiting.
      await system.sleep(0);
      const wish = parts.wish();
      const isBusy = [...observed.holdings.values()].some(({ worker }) => worker === request.worker);
      const lane = typeof wish === "object" ? observed.bringForward(wish.id) : null;
      const quotas = lane === null ? request.quotas : [{ lane, limit: 1 }];
      const may = !isBusy && (wish === "any" || lane !== null);
      const answer = await verbs.claim({ ...request, quotas: may ? quotas : [], limit: Math.min(1, request.limit) });
      for (const { id } of answer.jobs) parts.onTaken(id);
      return answer;
    },
  };
}

/** Notes in the store whether a run waits for the fake clock. */
export function waitsIn(observed: ObservedStore): Faulty["waits"] {
  return (context, waits) => {
    const holding = observed.holdings.get(nameOf(context.lease));
    if (holding) holding.waits = waits;
    observed.change();
  };
}
