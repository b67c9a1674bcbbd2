// The checks of `doctor` that read the store: workers, work that no worker takes, pauses, dead letters.
import { formatDuration } from "../core/duration.ts";
import { RESERVATION_CELL, reservationFrom } from "../core/reservation.ts";
import type { Store } from "../store/store.ts";
import { readHolding } from "../services/holding.ts";
import { type DueLane, dueLanes } from "../operate/due-work.ts";
import { type HealthFacts, isUpkeepLate, unarchivedText, upkeepTroubles } from "../core/health.ts";
import { gatherHealth, readState } from "../operate/health.ts";
import { type Finding, finding } from "../store/inspection.ts";
import { counted } from "./format.ts";

/** Due work that waits longer than this is reported: no worker takes it. */
const STUCK_MS = 60_000;

/** Jobs that must run alone are mostly taken within this time. */
const ALONE_SOON_MS = 10_000;

/** The job types that the config file defines, and where. */
export interface Defined {
  readonly types: readonly string[];
  readonly files: readonly string[];
}

/** Checks workers, waiting work, orphaned runs, pauses and dead letters; `defined` is null without a file of types. */
export async function queueFindings(store: Store, defined: Defined | null): Promise<Finding[]> {
  const facts = await gatherHealth(store, {}, readState(store));
  const { workers, orphans, paused, breakers, deadLetters, jobs } = facts;
  const lanes = await allOf(dueLanes(store, await readHolding(store)));
  const due = typesOf(lanes);
  const findings: Finding[] = [];
  const isIdle = jobs.queued + jobs.running === 0;
  findings.push(
    workers > 0 || isIdle
      ? finding("workers", "ok", counted(workers, "worker"))
      : finding("workers", "warning", "none is alive", "start one: worker --jobs FILE"),
  );
  findings.push(workFinding(facts, due), ...typesFinding(due, defined), upkeepFinding(facts));
  if (orphans > 0) {
    const remedy = "any living worker, or `drain`, takes them over within one lease";
    findings.push(finding("runs", "warning", `${counted(orphans, "run")} of workers that do not answer`, remedy));
  }
  findings.push(...(await aloneFinding(store, lanes)));
  if (paused.length > 0) {
    const remedy = "`queues list` shows why and until when; resume what should run";
    findings.push(finding("pauses", "warning", `paused: ${named(paused)}`, remedy));
  }
  if (breakers.length > 0) {
    const remedy = "their jobs wait without using attempts; `breakers list` shows why and until when";
    findings.push(
      finding("breakers", "warning", `not closed: ${named(breakers.map(({ service }) => service))}`, remedy),
    );
  }
  if (facts.unarchived.length > 0) {
    const remedy = "start a worker of these types with --archive FILE, or `dlq export` them and then `dlq remove` them";
    findings.push(finding("archive", "warning", unarchivedText(facts.unarchived), remedy));
  }
  if (deadLetters > 0)
    findings.push(
      finding(
        "dead",
        "warning",
        counted(deadLetters, "dead letter"),
        "`dlq stats` shows why, `dlq retry` sends them back to work",
      ),
    );
  return findings;
}

async function allOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

function typesOf(lanes: readonly DueLane[]): string[] {
  return [...new Set(lanes.map(({ type }) => type))].toSorted();
}

/** Jobs with one crash left that wait for an empty worker, and which worker is reserved for them. */
async function aloneFinding(store: Store, lanes: readonly DueLane[]): Promise<Finding[]> {
  const last = lanes.filter(({ kind }) => kind === "last");
  const { cells, now } = await store.cells([RESERVATION_CELL]);
  const reserved = cells.map(({ value }) => reservationFrom(value)).find((each) => each !== null && each.until > now);
  const dueMs = Math.max(0, ...last.map((lane) => lane.dueMs));
  // A worker with a child process takes them within moments.
  if (last.length === 0 || (!reserved && dueMs < ALONE_SOON_MS)) return [];
  const who = reserved ? `worker ${reserved.worker} takes no other work until then` : "no worker is empty yet";
  const message = `due for ${formatDuration(dueMs)}, to run alone because one crash is left: ${named(typesOf(last))}; ${who}`;
  const remedy =
    "nothing to do: one runs within 5 minutes; workers with `jobsFile` run them in a child process at once";
  return [finding("alone", "warning", message, remedy)];
}

function workFinding({ workers, oldestDueMs, waitingTypes, jobs }: HealthFacts, due: readonly string[]): Finding {
  if (workers === 0 && oldestDueMs !== null) {
    const message = `due for ${formatDuration(oldestDueMs)} while no worker is alive: ${named(due)}`;
    return finding("work", "warning", message, "run `worker` or `drain` with a --jobs FILE that defines these types");
  }
  if (oldestDueMs === null || oldestDueMs < STUCK_MS)
    return finding("work", "ok", `${counted(jobs.queued, "job")} waiting, ${jobs.running} running`);
  const message = `due for ${formatDuration(oldestDueMs)} and not taken: ${named(waitingTypes)}`;
  const remedy =
    "`jobs explain ID` shows why: no worker serves these types, all are busy, or a limit holds them back (see `limits`)";
  return finding("work", "problem", message, remedy);
}

function upkeepFinding({ upkeep, workers, now }: HealthFacts): Finding {
  const troubles = upkeepTroubles(upkeep, now).map(({ text }) => text);
  if (troubles.length === 0) {
    const { toldMs } = upkeep;
    return finding("upkeep", "ok", toldMs === null ? "nothing needs it" : `done ${formatDuration(toldMs)} ago`);
  }
  const remedy =
    workers === 0
      ? "start a worker: each of them runs upkeep"
      : "see `schedules list` and the logs of the workers; replace a worker that hangs";
  return finding("upkeep", isUpkeepLate(upkeep) ? "problem" : "warning", troubles.join("; "), remedy);
}

function typesFinding(due: readonly string[], defined: Defined | null): Finding[] {
  const unknown = defined === null ? [] : due.filter((type) => !defined.types.includes(type));
  if (defined === null || unknown.length === 0) return [];
  const message = `due, and not defined in ${defined.files.join(", ")}: ${named(unknown)}`;
  const remedy = "define them there, run a worker with the file that defines them, or `jobs cancel --type TYPE`";
  return [finding("types", "warning", message, remedy)];
}

const NAMED = 10;

function named(types: readonly string[]): string {
  const more = types.length - NAMED;
  return types.slice(0, NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
