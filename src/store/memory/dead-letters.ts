// Dead letters in memory: lists them, counts them, sends them back to work.
import { plainText } from "../../core/failure.ts";
import { type DeadLetter, type Failure, LATEST_INSTANT } from "../../core/job.ts";
import { laneOfKind } from "../../core/lane.ts";
import { CauseChanges, NO_WORKER } from "../causes.ts";
import { readCursor } from "../cursor.ts";
import { withoutPayload } from "../rows.ts";
import type { DeadLetterQuery, LetterFilter } from "../store.ts";
import { tallyOf } from "../tally.ts";
import type { Verbs } from "../verbs.ts";
import { placeOf, tick } from "./causes.ts";
import { type DeathRow, jobOf, type Row, startWaiting, type Tables } from "./tables.ts";

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
} as const;

/** The verbs about dead letters. */
export function deadLetterVerbs(tables: Tables): Pick<Verbs, "deadLetters" | "tally" | "history" | "redrive"> {
  return {
    deadLetters(query) {
      const position = readCursor(query.cursor, query.oldest);
      const found = tables.deaths
        .filter(({ seq }) => (query.oldest ? seq > position : seq < position))
        .filter((death) => matches(tables, death, query));
      if (!query.oldest) found.reverse();
      const items = found.slice(0, query.limit);
      return {
        items: items.map((death) => letterOf(tables, death, query)),
        next: found.length > items.length ? String(items.at(-1)?.seq) : null,
      };
    },
    tally(filter) {
      const found = tables.deaths.filter((death) => matches(tables, death, filter));
      const groups = found.map(({ seq, jobId, reason, failure, diedAt }) => {
        const { fingerprint, class: failureClass } = failure;
        const { type } = tables.jobs.get(jobId) as Row;
        return {
          fingerprint,
          class: failureClass,
          type,
          reason,
          count: 1,
          firstAt: diedAt,
          lastAt: diedAt,
          newest: seq,
        };
      });
      return tallyOf(groups, (newest) => found.find(({ seq }) => seq === newest)?.failure as Failure);
    },
    history: (id) => (tables.attempts.get(id) ?? []).map((record) => ({ ...record })),
    redrive(requests) {
      const changes = new CauseChanges();
      const answers = requests.map(({ id, generation, delayMs }) => {
        const row = tables.jobs.get(id);
        if (!row) return "missing";
        if (row.state !== "dead" || row.generation !== generation) return "refused";
        const now = tables.clock();
        const death = tables.deaths.find((other) => other.jobId === id && other.generation === generation);
        if (death?.redrivenAt === null) changes.add(placeOf(tables, death), { redriven: 1 });
        if (death) death.redrivenAt = now;
        const runAt = now + delayMs;
        Object.assign(row, FRESH, { state: "queued", generation: generation + 1, runAt, dueAt: runAt, updatedAt: now });
        row.lane = laneOfKind(row.lane, "first");
        startWaiting(tables, row);
        return "redriven";
      });
      tick(tables, changes, NO_WORKER, tables.clock());
      return answers;
    },
  };
}

function letterOf(tables: Tables, { seq: _seq, jobId, ...death }: DeathRow, { payloads }: DeadLetterQuery): DeadLetter {
  const job = jobOf(tables.jobs.get(jobId) as Row);
  return { ...death, job: payloads === false ? withoutPayload(job) : job };
}

function matches(tables: Tables, death: DeathRow, filter: LetterFilter): boolean {
  const { failure, diedAt } = death;
  const { type, service, tenant } = tables.jobs.get(death.jobId) as Row;
  const { class: failureClass, fingerprint } = failure;
  const own = { jobId: death.jobId, reason: death.reason, type, service, tenant, class: failureClass, fingerprint };
  for (const field of ["jobId", "type", "service", "tenant", "class", "reason", "fingerprint"] as const) {
    if (filter[field] !== undefined && filter[field] !== own[field]) return false;
  }
  if (filter.aside && tables.jobs.get(death.jobId)?.expiresAt !== LATEST_INSTANT) return false;
  if (!filter.redriven && death.redrivenAt !== null) return false;
  if (diedAt < (filter.from ?? diedAt) || diedAt >= (filter.until ?? diedAt + 1)) return false;
  if (filter.text === undefined) return true;
  const text = lower(filter.text);
  return [failure.name, failure.message].some((said) => lower(plainText(said)).includes(text));
}

/** Lower case for A to Z; other characters stay. */
function lower(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
