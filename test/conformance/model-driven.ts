// Random commands about redrive runs as programs handle them: plans and starts, steps of two drivers that are killed or met
// by another process between two of their calls, changes by operators, and payloads that are edited and restored.
import fc from "fast-check";
import { isRedriveError } from "../../src/core/errors.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import { openRepair } from "../../src/operate/repair.ts";
import { driverOf, openRedrives, type Redrives } from "../../src/operate/redrives.ts";
import { openEventLog } from "../../src/report/event-log.ts";
import { NO_LIMITS } from "../../src/services/holding.ts";
import type { Store } from "../../src/store/store.ts";
import { VERB_NAMES } from "../../src/store/verb-facts.ts";
import { lineLog } from "../../src/system/log.ts";
import { fakeSystem, seededDice } from "../../src/testing/fake-system.ts";
import { Timeline } from "../../src/testing/timeline.ts";
import type { RedriveDriver } from "../../src/upkeep/redrives.ts";
import { anyPick, command, type HeldDriver, jobAt, pick, type Shared } from "./model-command.ts";
import { drivenRuns } from "./model-sends.ts";

const JOBS = ["a", "b"].map((type) => defineJob(type, { run: () => undefined }));
const DRIVERS = ["d1", "d2"] as const;

/** What every part of a program is opened with; the number keeps the ids of one sequence apart. */
function partsOf({ clock }: Pick<Shared, "clock">, store: Store, actor: string, number: number) {
  const log = lineLog("silent");
  const bits = seededDice(number, actor);
  const now = (): number => clock.now;
  const system = { ...fakeSystem(new Timeline(clock.now), bits), now, monotonic: now };
  const eventLog = openEventLog({ store, log, actor });
  return { store, system, log, eventLog, actor, jobs: JOBS, limits: NO_LIMITS };
}

/** The answer, or the code of an error that a caller may meet. */
async function answered(work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    if (isRedriveError(error)) return { refused: error.code };
    throw error;
  }
}

const startSpec = fc.record({
  by: fc.constantFrom("type", "type", "type", "type", "cause", "cause", "class", "ids", "tenant"),
  some: fc.array(anyPick, { minLength: 1, maxLength: 4 }),
  canary: fc.constantFrom<"none" | number[]>("none", "none", [1], [2], [1, 3]),
  rate: fc.constantFrom(2, 10, 50),
  limit: fc.constantFrom(null, null, null, null, 2),
  patch: fc.constantFrom(null, null, null, '{"p":9}'),
  superseded: fc.constantFrom(false, false, true),
  alongside: fc.boolean(),
});

/** Plans a redrive and starts it. */
export const startRun = command("startRun", startSpec, (shared, given) => {
  const number = ++shared.made;
  const ids = [...new Set(given.some.map((choice) => jobAt(shared, choice, ["dead"]).id))];
  const selection = {
    type: { type: "a" },
    cause: { fingerprint: "f1" },
    class: { class: "transient" as const },
    tenant: { tenant: "t1" },
    ids: { ids },
  }[given.by];
  const { superseded, patch } = given;
  const limit = given.limit === null || given.by === "ids" ? {} : { limit: given.limit };
  const options = { superseded, ...(patch && { patch, skipMisfits: true }) };
  return (store) => {
    const ada = openRedrives(partsOf(shared, store, "ada", number));
    return answered(async () => {
      const { id, count, toSend, warnings } = await ada.plan({ ...selection, ...limit }, options);
      const { canary, rate, alongside } = given;
      const run = count > 0 ? await ada.start(id, { canary, rate, alongside }) : null;
      return { count, toSend, warnings: warnings.map(({ kind }) => kind), id: run?.id, counts: run?.counts };
    });
  };
});

/** The error of a process that was killed. */
class Killed extends Error {}

/** What happens at one call of a driver: it is killed before or after it, or another process acts first. */
const EVENTS = ["killed before", "killed after", "driver", "pause", "cancel", "recall"] as const;
type DriverEvent = "none" | "held" | (typeof EVENTS)[number];
const driveSpec = fc.record({
  driver: fc.constantFrom(...DRIVERS),
  steps: fc.integer({ min: 1, max: 4 }),
  // Its first write, or any of its calls.
  at: fc.oneof(fc.constantFrom("redrive", "redrive", "redrive", "setCells", "recall"), fc.integer({ min: 1, max: 9 })),
  event: fc.constantFrom<DriverEvent>("none", ...EVENTS),
  run: fc.nat(3),
});

/** The store of a driver with which something happens at one of its calls. */
function interrupted(store: Store, at: string | number, event: DriverEvent, act: () => Promise<unknown>): Store {
  let [calls, isOver] = [0, false];
  const verbs = VERB_NAMES.map((verb) => [
    verb,
    async (...args: unknown[]) => {
      calls += 1;
      if (isOver && event.startsWith("killed")) throw new Killed();
      const isNow = !isOver && (at === verb || at === calls);
      isOver ||= isNow;
      if (isNow && event === "killed before") throw new Killed();
      if (isNow && !event.startsWith("killed")) await act();
      const answer = await (store[verb] as (...given: unknown[]) => Promise<unknown>)(...args);
      if (isNow && event === "killed after") throw new Killed();
      return answer;
    },
  ]);
  return { ...store, ...(Object.fromEntries(verbs) as Partial<Store>) };
}

type Driving = typeof driveSpec extends fc.Arbitrary<infer T> ? T : never;

/** Some steps of a driver, in which a second may step, an operator may change the run, or a kill may end it. */
export const drive = command("drive", driveSpec, driven);

/** Some steps of a driver that nothing disturbs. */
export const driveOn = command("driveOn", fc.constantFrom(...DRIVERS), (shared, driver) =>
  driven(shared, { driver, steps: 3, at: 0, event: "none", run: 0 }),
);

function driven(shared: Shared, { driver: name, steps, at, event, run }: Driving) {
  const number = ++shared.made;
  const other = DRIVERS.find((each) => each !== name) as string;
  const target = pick(drivenRuns(shared.latest.cells), run);
  return async (store: Store): Promise<unknown> => {
    const meanwhile = async (): Promise<void> => {
      if (event === "driver") await driverOf(partsOf(shared, store, other, number), other).stepAll();
      else if (event !== "none" && target) await change(shared, store, number, event as Change, target.id);
    };
    const own = interrupted(store, at, event, meanwhile);
    const driver: RedriveDriver = driverOf(partsOf(shared, own, name, number), name);
    for (let step = 0; step < steps; step++) {
      if ((await stepOf(driver)) === "killed") return "killed";
    }
    return "stepped";
  };
}

const holdSpec = fc.record({
  driver: fc.constantFrom(...DRIVERS),
  at: fc.oneof(fc.constantFrom("redrive", "redrive", "redrive", "setCells"), fc.integer({ min: 1, max: 9 })),
});

/** A step of a driver up to one of its calls, where it stays while other commands follow. */
export const hold = command("hold", holdSpec, (shared, { driver: name, at }) => {
  const number = ++shared.made;
  if (shared.held.has(name)) return async () => "held before";
  const held: HeldDriver[] = [];
  shared.held.set(name, held);
  return async (store) => {
    const [isReached, reached] = signal<string>();
    const [isLetGo, letGo] = signal<"go on" | "kill">();
    const own = interrupted(store, at, "held", async () => {
      reached("held");
      if ((await isLetGo) === "kill") throw new Killed();
    });
    const ended = stepOf(driverOf(partsOf(shared, own, name, number), name));
    held.push({ end: (how) => (letGo(how), ended) });
    return Promise.race([isReached, ended]);
  };
});

/** A promise, and what fulfils it. */
function signal<T>(): [promise: Promise<T>, give: (value: T) => void] {
  let give: (value: T) => void = () => undefined;
  return [new Promise<T>((resolve) => (give = resolve)), (value) => give(value)];
}

const goOnSpec = fc.record({
  driver: fc.constantFrom(...DRIVERS),
  how: fc.constantFrom<"go on" | "kill">("go on", "go on", "go on", "kill"),
});

/** A driver that is held makes its call and ends its step, or is killed there. */
export const goOn = command("goOn", goOnSpec, (shared, { driver, how }) => {
  const held = shared.held.get(driver) ?? [];
  shared.held.delete(driver);
  return async () => held.shift()?.end(how) ?? "none";
});

/** How a step of a driver ended. */
function stepOf(driver: RedriveDriver): Promise<"stepped" | "killed"> {
  return driver.stepAll().then(
    () => "stepped" as const,
    (error: unknown) => (error instanceof Killed ? ("killed" as const) : Promise.reject(error)),
  );
}

const CHANGES = ["pause", "resume", "cancel", "recall"] as const;
type Change = (typeof CHANGES)[number];

async function change(shared: Shared, store: Store, number: number, name: Change, id: string): Promise<unknown> {
  const runs: Redrives = openRedrives(partsOf(shared, store, "bob", number));
  return answered(async () => {
    const { state, counts, recall } = await runs[name](id, { why: "w" });
    return { state, counts, recall };
  });
}

/** An operator changes a run. */
export const changeRun = command(
  "changeRun",
  fc.record({ name: fc.constantFrom(...CHANGES), run: fc.nat(3) }),
  (shared, { name, run }) => {
    const number = ++shared.made;
    const id = pick(drivenRuns(shared.latest.cells), run)?.id ?? "r_none";
    return (store) => change(shared, store, number, name, id);
  },
);

const editSpec = fc.record({
  choice: anyPick,
  payload: fc.constantFrom(null, null, '{"a":9007199254740993}', '"\\ud800"', "{"),
  seen: fc.constantFrom("current", "current", "other"),
});

/** An operator edits the payload of a dead job, or restores the first one; a job that was sent is recalled first. */
export const edit = command("edit", editSpec, (shared, { choice, payload, seen }) => {
  const number = ++shared.made;
  const changed = shared.latest.jobs.filter(({ generation, state }) => state === "queued" && generation > 1);
  const isUndo = payload === null;
  const target = (isUndo && choice.aimed ? pick(changed, choice.n) : undefined) ?? jobAt(shared, choice, ["dead"]);
  const job = shared.latest.jobs.find(({ id }) => id === target.id);
  return (store) => {
    const { system: _, ...parts } = partsOf(shared, store, "cy", number);
    const openModule = (): never => {
      throw new Error("No recipe of the model has a module.");
    };
    const repair = openRepair({ ...parts, openModule, maxPayloadBytes: 1_000 }, () => ({}));
    if (isUndo) return answered(() => repair.undo(target.id));
    const before = seen === "current" || !job ? {} : { seen: { payload: `${job.payload} `, generation: 1 } };
    return answered(() => repair.edit(target.id, payload, before));
  };
});
