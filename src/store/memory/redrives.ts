// Sends dead letters back to work, takes back those that no worker has taken, and counts what became of them, in memory.
import { laneOfKind } from "../../core/lane.ts";
import { mayRecall, RECENT_RUNS, type RedriveSums } from "../../core/recovery/outcome.ts";
import { CauseChanges, NO_WORKER } from "../causes.ts";
import { RedriveChanges } from "../dead-letters.ts";
import { type NewPayload, payloadHash } from "../payloads.ts";
import type { RecallAnswer, RecallTarget, RedriveAnswer, RedriveCounts, RedriveRequest } from "../store.ts";
import type { Verbs } from "../verbs.ts";
import { placeOf, tick } from "./causes.ts";
import { setCell } from "./cells.ts";
import { countRuns, letterOf, total } from "./outcomes.ts";
import { NOT_SENT, type Row, startWaiting, stopWaiting, type Tables } from "./tables.ts";
import { finish } from "./work.ts";

/** The fields of a job that is sent back to work. */
const FRESH = {
  attempts: 0,
  crashes: 0,
  releases: 0,
  lastDelayMs: 0,
  batchMost: null,
  finishedAt: null,
  expiresAt: null,
  cancelRequested: false,
  failure: null,
} as const;

/** The verbs that send dead letters back, and take them back. */
export function redriveVerbs(tables: Tables): Pick<Verbs, "redrive" | "recall" | "redriveCounts"> {
  return {
    redrive(requests, fence) {
      if (fence && !setCell(tables, fence)) return requests.map(() => "fenced");
      const [causes, runs] = [new CauseChanges(), new RedriveChanges()];
      const answers = requests.map((request) => send(tables, request, causes, runs));
      tick(tables, causes, NO_WORKER, tables.clock());
      countRuns(tables, runs, NO_WORKER);
      return answers;
    },
    recall(targets) {
      const [causes, runs] = [new CauseChanges(), new RedriveChanges()];
      const answers = targets.map((target) => takeBack(tables, target, causes, runs));
      tick(tables, causes, NO_WORKER, tables.clock());
      countRuns(tables, runs, NO_WORKER);
      return answers;
    },
    redriveCounts: (ids) => ids.map((id) => countsOf(tables, id)),
  };
}

function send(tables: Tables, request: RedriveRequest, causes: CauseChanges, runs: RedriveChanges): RedriveAnswer {
  const { id, generation, delayMs, redrive = null, payload } = request;
  const row = tables.jobs.get(id);
  if (!row) return "missing";
  if (row.state !== "dead" || row.generation !== generation) return "refused";
  const now = tables.clock();
  const death = letterOf(tables, id, generation);
  if (death?.redrivenAt === null) {
    causes.add(placeOf(tables, death), { redriven: 1 });
    runs.add(redrive, { sent: 1 });
    Object.assign(death, { redrivenAt: now, redrive });
  }
  const runAt = now + delayMs;
  Object.assign(row, FRESH, { state: "queued", generation: generation + 1, runAt, dueAt: runAt, updatedAt: now });
  row.lane = laneOfKind(row.lane, "first");
  if (payload !== undefined && payload !== row.payload)
    addPayload(tables, row, { payload, at: now, actor: null, redrive, why: null });
  startWaiting(tables, row);
  return "redriven";
}

function takeBack(tables: Tables, target: RecallTarget, causes: CauseChanges, runs: RedriveChanges): RecallAnswer {
  const { id, generation, repair } = target;
  const row = tables.jobs.get(id);
  if (!row) return "missing";
  if (repair && payloadHash(row.payload) !== repair.was) return "refused";
  const death = letterOf(tables, id, generation);
  const hasRun = (tables.attempts.get(id) ?? []).some((record) => record.generation === row.generation);
  if (!death || !mayRecall(row, generation, hasRun)) return "refused";
  const now = tables.clock();
  stopWaiting(tables, row);
  row.updatedAt = now;
  row.failure = death.failure;
  finish(tables, row, "dead", now);
  tables.deaths.push({ ...death, ...NOT_SENT, seq: ++tables.sequence, generation: row.generation });
  causes.add(placeOf(tables, death), { redriven: -1 });
  runs.add(death.redrive, { recalled: 1 });
  Object.assign(death, { outcome: "recalled", outcomeAt: now });
  if (repair && repair.payload !== row.payload) addPayload(tables, row, { ...repair, at: now, redrive: null });
  return "recalled";
}

/** Gives a job another payload and keeps the one before. */
export function addPayload(tables: Tables, row: Row, { payload, at, actor, redrive, why }: NewPayload): void {
  const first = { n: 0, payload: row.payload, at: row.createdAt, generation: 1, actor: null, redrive: null, why: null };
  const all = tables.payloads.get(row.id) ?? [first];
  const generation = row.state === "dead" ? row.generation + 1 : row.generation;
  tables.payloads.set(row.id, [...all, { n: all.length, payload, at, generation, actor, redrive, why }]);
  row.payload = payload;
}

function countsOf({ redriveTicks }: Tables, id: string): RedriveCounts {
  const own = [...redriveTicks.values()].filter(({ redrive }) => redrive === id);
  const recent: RedriveSums[] = [];
  let runs = 0;
  for (const at of [...new Set(own.map((row) => row.at))].sort((a, b) => b - a)) {
    if (runs >= RECENT_RUNS) break;
    const sums = total(own.filter((row) => row.at === at));
    recent.push(sums);
    runs += sums.good + sums.same + sums.other;
  }
  return { id, ...total(own), recent: total(recent) };
}
