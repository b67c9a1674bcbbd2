// Everything that can be read from a store, in an order that all stores share, and what must hold for it at any time.
import type { AttemptRecord, DeadLetter, Job, State } from "../../src/core/job.ts";
import type { ActiveLane } from "../../src/core/lane.ts";
import { RUN_CELLS } from "../../src/core/recovery/run.ts";
import { PLAN_CELLS } from "../../src/core/recovery/plan.ts";
import type { FrozenSelection } from "../../src/core/recovery/selection.ts";
import { miscountedRuns } from "./model-runs.ts";
import { drivenRuns, wrongSends } from "./model-sends.ts";
import type {
  Cause,
  Cell,
  Control,
  LoggedEvent,
  Page,
  PayloadVersion,
  RedriveCounts,
  Store,
  WorkerRecord,
} from "../../src/store/store.ts";

/** The kinds of cells that commands write. */
export const CELL_KINDS = ["k1", "k2"] as const;

/** The redrive runs that commands send by. */
export const REDRIVES = ["r1", "r2"] as const;

/** The kinds of cells that explanations go by. */
export const NOTE_KINDS = ["load", "settings", "rate", "budget", "evidence"] as const;

/** The groups of the jobs that commands enqueue. */
export const GROUPS = ["g1", "g 2"] as const;

/** All that a store says about itself. */
export interface Dump {
  readonly jobs: readonly Job[];
  readonly counts: Record<State, number>;
  readonly history: readonly (readonly AttemptRecord[])[];
  readonly deadLetters: readonly DeadLetter[];
  readonly lanes: readonly Omit<ActiveLane, "lane">[];
  /** By type and group. */
  readonly holders: readonly (readonly Job[])[];
  readonly workers: readonly WorkerRecord[];
  readonly control: Control;
  readonly cells: readonly Cell[];
  readonly events: readonly LoggedEvent[];
  readonly causes: readonly Cause[];
  readonly redrives: readonly RedriveCounts[];
  /** Of each job that has died, in the order of the jobs. */
  readonly payloads: readonly (readonly PayloadVersion[])[];
}

/** A lane by what it holds: the number is each store's own affair. */
export function laneName({ lane: _lane, headRunAt: _head, ...name }: ActiveLane): string {
  const { type, queue, service, tenant, group, groupConcurrency, kind } = name;
  return JSON.stringify([10 - name.priority, type, queue, service, tenant, group, groupConcurrency, kind]);
}

/** Every lane, read in pages, in an order that both stores share. */
export async function allLanes(store: Store, size: number): Promise<ActiveLane[]> {
  const lanes: ActiveLane[] = [];
  let after: number | null = null;
  do {
    const page = await store.lanes(after, size);
    lanes.push(...page.lanes);
    after = page.next;
  } while (after !== null);
  return lanes.toSorted((a, b) => (laneName(a) < laneName(b) ? -1 : 1));
}

async function pages<T>(read: (cursor: string | null) => Promise<Page<T>>): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<T> = await read(cursor);
    items.push(...page.items);
    cursor = page.next;
  } while (cursor !== null);
  return items;
}

const byText = (a: unknown, b: unknown): number => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);

/** A cell of a run or of a plan without the numbers of letters, which are each store's own affair. */
function withoutNumbers(cell: Cell): Cell {
  if (cell.kind !== RUN_CELLS && cell.kind !== PLAN_CELLS) return cell;
  const value = JSON.parse(cell.value) as { cursor?: string | null; selection?: Partial<FrozenSelection> };
  if (typeof value !== "object" || !value.selection) return cell;
  const { through: _through, upTo, ...others } = value.selection;
  const selection = { ...others, through: 0, ...(upTo !== undefined && { upTo: "set" }) };
  const cursor = typeof value.cursor === "string" ? { cursor: "set" } : {};
  return { ...cell, value: JSON.stringify({ ...value, selection, ...cursor }) };
}

/** Reads everything, lists in small pages. */
export async function dump(store: Store): Promise<Dump> {
  const jobs = await pages((cursor) => store.list({ limit: 7, cursor }));
  const history = [];
  for (const { id, attempts, crashes, generation } of jobs) {
    if (attempts + crashes > 0 || generation > 1) history.push(await store.history(id));
  }
  const payloads = [];
  // Only a dead job gets another payload.
  for (const { id, state, generation } of jobs)
    if (state === "dead" || generation > 1) payloads.push(await store.payloads(id));
  const groups = ["a", "b"].flatMap((type) => GROUPS.map((group) => ({ type, group })));
  const control = await store.control();
  const kinds = [...CELL_KINDS, ...NOTE_KINDS, RUN_CELLS, PLAN_CELLS];
  const cells = (await store.cells(kinds.map((kind) => ({ kind })))).cells.map(withoutNumbers);
  return {
    jobs,
    counts: await store.count(),
    history,
    deadLetters: await pages((cursor) => store.deadLetters({ limit: 5, cursor, redriven: true })),
    lanes: (await allLanes(store, 3)).map(({ lane: _lane, ...rest }) => rest),
    holders: await Promise.all(groups.map((group) => store.holders(group))),
    workers: (await store.workers()).toSorted(byText),
    control: { ...control, pauses: control.pauses.toSorted(byText) },
    cells,
    events: await pages((cursor) => store.events({ limit: 7, cursor })),
    causes: await pages((cursor) => store.causes({ limit: 200, cursor, idle: true })),
    redrives: await store.redriveCounts([...REDRIVES, ...drivenRuns(cells).map(({ id }) => id)]),
    payloads,
  };
}

/** What is wrong in `after`, given that `before` was true a moment ago; empty when all is well. */
export function violations(before: Dump, after: Dump): string[] {
  const found: string[] = [];
  const past = new Map(before.jobs.map((job) => [job.id, job]));
  const live = new Map<string, DeadLetter[]>();
  for (const letter of after.deadLetters) {
    if (letter.redrivenAt === null) live.set(letter.job.id, [...(live.get(letter.job.id) ?? []), letter]);
  }
  for (const job of after.jobs) {
    const letters = live.get(job.id) ?? [];
    const own = letters.filter((letter) => letter.generation === job.generation);
    const buried = letters.length === 1 && own.length === 1;
    if (job.state === "dead" ? !buried : letters.length > 0)
      found.push(`${job.id} is ${job.state} with ${letters.length} letters`);
    const finished = job.state !== "queued" && job.state !== "running";
    if (finished !== (job.finishedAt !== null)) found.push(`${job.id} is ${job.state}, finished at ${job.finishedAt}`);
    const was = past.get(job.id);
    if (!was) continue;
    if (job.epoch < was.epoch) found.push(`${job.id} fell from epoch ${was.epoch} to ${job.epoch}`);
    if (job.epoch > was.epoch + 1) found.push(`${job.id} jumped from epoch ${was.epoch} to ${job.epoch}`);
    if (job.generation < was.generation) found.push(`${job.id} fell to generation ${job.generation}`);
    if (job.generation === was.generation && (job.attempts < was.attempts || job.crashes < was.crashes)) {
      found.push(`${job.id} lost charges: ${was.attempts}+${was.crashes}, now ${job.attempts}+${job.crashes}`);
    }
    if (isEnd(was.state) && !(was.state === "dead" && job.generation > was.generation) && job.state !== was.state) {
      found.push(`${job.id} went from ${was.state} to ${job.state}`);
    }
  }
  for (const [state, count] of Object.entries(after.counts)) {
    const listed = after.jobs.filter((job) => job.state === state).length;
    if (listed !== count) found.push(`${count} jobs are counted as ${state}, ${listed} are listed`);
  }
  found.push(...misplaced(after), ...miscounted(after), ...miscountedRuns(before, after), ...wrongSends(before, after));
  const running = after.workers.reduce((sum, worker) => sum + worker.running, 0);
  if (running !== after.counts.running) found.push(`${after.counts.running} jobs run, workers hold ${running}`);
  return found;
}

/** What is wrong with the counts of causes, beside a real count of their live letters. */
function miscounted({ deadLetters, causes }: Dump): string[] {
  const real = new Map<string, number>();
  for (const { redrivenAt, failure } of deadLetters)
    if (redrivenAt === null) real.set(failure.fingerprint, (real.get(failure.fingerprint) ?? 0) + 1);
  const counted = new Map(causes.map(({ fingerprint, live }) => [fingerprint, live]));
  return [...new Set([...real.keys(), ...counted.keys()])].flatMap((cause) => {
    const [letters, live] = [real.get(cause) ?? 0, counted.get(cause) ?? 0];
    return letters === live ? [] : [`${cause} has ${letters} live letters, ${live} are counted`];
  });
}

/** What is wrong with the places of groups: who runs holds one, and so does who waits for its turn in a group of one. */
function misplaced({ jobs, holders }: Dump): string[] {
  const found: string[] = [];
  const placed = new Set(holders.flat().map(({ id }) => id));
  for (const { id, group, groupConcurrency, state } of jobs) {
    if (state === "running" && placed.has(id) !== (group !== null))
      found.push(`${id} runs without a place in ${group}`);
    const may = state === "running" || (state === "queued" && groupConcurrency === 1);
    if (placed.has(id) && !may) found.push(`${id} is ${state} and holds a place in ${group}`);
  }
  for (const group of holders) {
    const most = Math.max(0, ...group.map(({ groupConcurrency }) => groupConcurrency ?? 0));
    if (group.length > most) found.push(`${group.length} jobs hold one of ${most} places`);
  }
  return found;
}

function isEnd(state: State): boolean {
  return state !== "queued" && state !== "running";
}
