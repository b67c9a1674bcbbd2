// Defects of workers to plant: each puts something between a worker and its store, or replaces a part of the worker, so
// that it breaks one promise. Nothing of the kind exists in the library itself; there is no switch for it.
import { vi } from "vitest";
import type { Settlement, Store } from "../../src/store/store.ts";
import type { StopReason } from "../../src/worker/run.ts";
import type { createWorker } from "../../src/worker/worker.ts";
import type { Defect } from "./planted.ts";
import type { Simulation } from "./simulate.ts";

type Reaper = typeof import("../../src/upkeep/expired-runs.ts");
type GateModule = typeof import("../../src/services/service-gate.ts");
type RecordModule = typeof import("../../src/core/service-record.ts");
type HandsModule = typeof import("../../src/worker/in-flight.ts");
type PresenceModule = typeof import("../../src/worker/presence.ts");

const DAY_MS = 86_400_000;

/** Every defect of a worker that is planted. */
export const WORKER_DEFECTS: readonly Defect[] = [
  {
    name: "a dead letter is written in two steps",
    rules: ["R8"],
    within: 20,
    foundBy: 4,
    plant: async () => deadLetterInTwoSteps(),
  },
  {
    name: "a reaper does not wait for a lease",
    rules: ["R9"],
    within: 10,
    plant: () =>
      replaced<Reaper>("../../src/upkeep/expired-runs.ts", ({ reap }) => ({
        reap: (options, evidence) => reap({ ...options, hasLasted: () => true }, evidence),
      })),
  },
  {
    name: "a reaper waits for a lease of its own, not for that of the worker it judges",
    rules: ["R9"],
    within: 60,
    foundBy: 2,
    plant: () =>
      replaced<Reaper>("../../src/upkeep/expired-runs.ts", ({ reap }) => ({
        reap: (options, evidence) =>
          reap({ ...options, hasLasted: () => options.hasLasted(options.leaseMs) }, evidence),
      })),
  },
  {
    name: "a reaper does not notice that the clock of the store has stepped ahead",
    rules: ["R9"],
    within: 100,
    foundBy: 21,
    plant: async () => ({
      settings: { clockSteps: 6 },
      ...(await replaced<Reaper>("../../src/upkeep/expired-runs.ts", ({ reap }) => ({
        reap: (options, evidence) => reap({ ...options, onTold: () => undefined }, evidence),
      }))),
    }),
  },
  {
    name: "a run that has ended and is not settled does not count as held",
    rules: ["R19"],
    within: 40,
    plant: () =>
      replaced<HandsModule>("../../src/worker/in-flight.ts", ({ InFlight }) => ({
        InFlight: class extends InFlight {
          override get held(): number {
            return this.ahead + this.running.size;
          }
        },
      })),
  },
  {
    name: "a worker claims the work of a service whose breaker is open",
    rules: ["R10"],
    within: 20,
    plant: async () => ({
      settings: { fragile: true },
      ...(await replaced<GateModule>("../../src/services/service-gate.ts", ({ Gate }) => ({
        Gate: class extends Gate {
          override grant(): number | null {
            return null;
          }
        },
      }))),
    }),
  },
  {
    name: "a worker claims without looking whether a breaker has opened since it planned",
    rules: ["R10"],
    within: 60,
    foundBy: 7,
    plant: async () => ({ settings: { fragile: true, workers: 8 }, wrap: (store) => unguarded(store) }),
  },
  {
    name: "a breaker stays half-open where the next config has fewer probes",
    rules: ["R20"],
    within: 60,
    foundBy: 24,
    plant: async () => ({
      settings: { fragile: true, deploys: true },
      ...(await replaced<RecordModule>("../../src/core/service-record.ts", ({ mayProbe }) => ({
        mayProbe: (record, settings, now) => {
          const { breaker } = record;
          if (breaker.state !== "half_open") return mayProbe(record, settings, now);
          const running = breaker.probes.filter(({ until }) => until > now).length;
          return running + breaker.successes < settings.probes;
        },
      }))),
    }),
  },
  {
    name: "a worker ignores that its verdict was stale and reports it as counted",
    rules: ["R5"],
    within: 60,
    foundBy: 12,
    plant: async () => ({
      sabotage: (store) => ({ ...store, settle: async (request) => ({ ...(await store.settle(request)), stale: [] }) }),
    }),
  },
  {
    name: "wake-ups are lost and polling is switched off",
    rules: ["R11", "R15"],
    within: 10,
    plant: async () => ({
      settings: { workerPollMs: DAY_MS },
      sabotage: (store) => ({ ...store, onWake: () => () => {} }),
    }),
  },
  {
    name: "a crash is not charged, so that a killer goes round for ever",
    rules: ["R15"],
    within: 10,
    plant: async () => ({ sabotage: uncharged }),
  },
  {
    name: "what is only fetched ahead counts as started",
    rules: ["R7"],
    within: 10,
    plant: () =>
      replaced<HandsModule>("../../src/worker/in-flight.ts", ({ InFlight }) => ({
        InFlight: class extends InFlight {
          override tickets(...[limit, quotas]: Parameters<InstanceType<typeof InFlight>["tickets"]>) {
            const { ticket } = super.tickets(limit, quotas);
            this.self.startedThrough = ticket + limit - 1;
            return { ticket, startedThrough: this.self.startedThrough };
          }
        },
      })),
  },
  {
    name: "a worker that was given up goes on with the runs of its old id",
    rules: ["R9"],
    within: 100,
    foundBy: 31,
    plant: async () => ({
      settings: { longRuns: 0.5 },
      ...(await replaced<HandsModule>("../../src/worker/in-flight.ts", ({ InFlight }) => ({
        InFlight: class extends InFlight {
          override stop(reason: StopReason): void {
            if (reason !== "lease_lost" && reason !== "contact_lost") super.stop(reason);
          }
        },
      }))),
    }),
  },
  {
    name: "a worker that was given up keeps its old id",
    rules: ["R15"],
    within: 60,
    foundBy: 12,
    plant: () =>
      replaced<PresenceModule>("../../src/worker/presence.ts", ({ Presence }) => ({
        Presence: class extends Presence {
          override async comeBack(): Promise<void> {}
        },
      })),
  },
  {
    name: "the jobs of a claim without an answer are not handed back",
    rules: ["R15"],
    within: 60,
    foundBy: 5,
    plant: async () => ({ sabotage: (store) => ({ ...store, held: async () => [] }) }),
  },
  {
    name: "a verdict is dropped when the store does not answer",
    rules: ["R15", "R5"],
    within: 10,
    plant: async () => ({
      sabotage: (store) => ({
        ...store,
        settle: (request) => store.settle(request).catch(() => ({ stale: [], now: 0 })),
      }),
    }),
  },
];

/** Workers in which parts of one module are replaced; the module is given as this file would import it. */
async function replaced<Module extends object>(
  path: string,
  replace: (original: Module) => Partial<Module>,
): Promise<Partial<Simulation>> {
  vi.resetModules();
  vi.doMock(path, async (load) => {
    const original = await load<Module>();
    return { ...original, ...replace(original) };
  });
  const { createWorker: hire }: { createWorker: typeof createWorker } = await import("../../src/worker/worker.ts");
  vi.doUnmock(path);
  return { hire };
}

/** Takes every claim for one that was planned by what holds now. */
function unguarded(store: Store): Store {
  return {
    ...store,
    claim: async (request) => store.claim({ ...request, control: (await store.control()).version }),
  };
}

/** The job first, its letter with a second call, which may never come. */
function deadLetterInTwoSteps(): Partial<Simulation> {
  const unwritten = new Set<string>();
  return {
    wrap: (store) => ({
      ...store,
      async deadLetters(query) {
        const page = await store.deadLetters(query);
        return { ...page, items: page.items.filter(({ job }) => !unwritten.has(job.id)) };
      },
    }),
    sabotage: (store) => ({
      ...store,
      async settle(request) {
        const dead = request.settlements.filter(({ verdict }) => verdict.kind === "dead").map(({ id }) => id);
        for (const id of dead) unwritten.add(id);
        const answer = await store.settle(request);
        if (dead.length > 0) await store.control();
        for (const id of dead) unwritten.delete(id);
        return answer;
      },
    }),
  };
}

/** A reaper that sends lost runs back as if nothing had happened. */
function uncharged(store: Store): Store {
  const innocent = (settlement: Settlement): Settlement => {
    const { verdict } = settlement;
    if (!("charge" in verdict) || verdict.charge.crashes === 0) return settlement;
    const charge = { attempts: 0, crashes: 0 } as const;
    return { ...settlement, verdict: { kind: "retry", delayMs: 0, lane: "first", charge, failure: verdict.failure } };
  };
  return {
    ...store,
    settle: (request) => store.settle({ ...request, settlements: request.settlements.map(innocent) }),
  };
}
