// Dead letters in memory: lists them and counts them.
import { plainText } from "../../core/failure.ts";
import { type DeadLetter, type Failure, type Job, LATEST_INSTANT } from "../../core/job.ts";
import { enqueuedCursor, readCursor, readEnqueuedCursor } from "../cursor.ts";
import { lookThrough } from "./look.ts";
import { withoutPayload } from "../rows.ts";
import type { DeadLetterQuery, LetterFilter, LetterPage, LetterRange, Reach } from "../store.ts";
import { tallyOf } from "../tally.ts";
import type { Verbs } from "../verbs.ts";
import { type DeathRow, jobOf, keyName, type Row, type Tables } from "./tables.ts";

/** The verbs about dead letters. */
export function deadLetterVerbs(tables: Tables): Pick<Verbs, "deadLetters" | "tally" | "history"> {
  return {
    deadLetters(query) {
      if (query.sort === "enqueued") return listEnqueued(tables, query);
      const position = readCursor(query.cursor, query.oldest);
      const walked = walk(tables, query).filter(({ seq }) => (query.oldest ? seq > position : seq < position));
      if (!query.oldest) walked.reverse();
      const { items, ...page } = lookThrough(walked, boundOf(query), (death) => matches(tables, death, query));
      const seen = page.seen && { seenTo: page.seen.diedAt };
      return { items: items.map((death) => letterOf(tables, death, query)), next: page.next, ...seen };
    },
    tally(filter) {
      const all = walk(tables, filter).reverse();
      const { lookAt } = boundOf(filter);
      const last = lookAt === undefined ? undefined : all[lookAt - 1];
      const found = all.slice(0, lookAt).filter((death) => matches(tables, death, filter));
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
      const failureOf = (newest: number): Failure => found.find(({ seq }) => seq === newest)?.failure as Failure;
      return tallyOf(groups, failureOf, last ? { at: last.diedAt } : null);
    },
    history: (id) => (tables.attempts.get(id) ?? []).map((record) => ({ ...record })),
  };
}

/** The letters that a question walks through, oldest first: those of a cause or of a type where it names one. */
function walk(tables: Tables, { fingerprint, type }: LetterFilter): DeathRow[] {
  if (fingerprint !== undefined) return tables.deaths.filter(({ failure }) => failure.fingerprint === fingerprint);
  return tables.deaths.filter(({ jobId }) => type === undefined || tables.jobs.get(jobId)?.type === type);
}

/** A job leads to few letters: all of them are looked at. */
function boundOf<Q extends LetterFilter & Reach>(query: Q): Q {
  return query.jobId === undefined ? query : { ...query, lookAt: undefined };
}

/** Letters in the order of enqueue, as far as they existed at the first page. */
function listEnqueued(tables: Tables, query: DeadLetterQuery): LetterPage {
  const from = readEnqueuedCursor(query.cursor);
  const newest = from?.through ?? tables.deaths.at(-1)?.seq ?? 0;
  const through = Math.min(newest, query.through ?? newest);
  const found = tables.deaths
    .filter((death) => death.seq <= through && matches(tables, death, query))
    .map((death) => ({ death, jobSeq: (tables.jobs.get(death.jobId) as Row).seq, generation: death.generation }))
    .filter(({ jobSeq, generation }) => {
      if (from === null) return true;
      return jobSeq > from.jobSeq || (jobSeq === from.jobSeq && generation > from.generation);
    })
    .sort((a, b) => a.jobSeq - b.jobSeq || a.generation - b.generation);
  const items = found.slice(0, query.limit);
  const last = items.at(-1);
  return {
    items: items.map(({ death }) => letterOf(tables, death, query)),
    next: last && found.length > items.length ? enqueuedCursor({ ...last, through }) : null,
    through,
  };
}

function letterOf(tables: Tables, { seq: _seq, jobId, ...death }: DeathRow, { payloads }: DeadLetterQuery): DeadLetter {
  const job = jobOf(tables.jobs.get(jobId) as Row);
  return { ...death, job: payloads === false ? withoutPayload(job) : job, supersededBy: holderOf(tables, job) };
}

/** The other job that holds the key of this one. */
function holderOf({ keys, jobs }: Tables, { id, type, key }: Job): DeadLetter["supersededBy"] {
  const holder = key === null ? undefined : keys.get(keyName(type, key))?.jobId;
  return holder === undefined || holder === id ? null : { id: holder, state: jobs.get(holder)?.state ?? null };
}

function matches(tables: Tables, death: DeathRow, filter: LetterFilter & LetterRange): boolean {
  const { failure, diedAt } = death;
  const { seq, type, service, tenant, key } = tables.jobs.get(death.jobId) as Row;
  if (death.seq > (filter.through ?? death.seq)) return false;
  const upTo = readEnqueuedCursor(filter.upTo);
  if (upTo && (seq - upTo.jobSeq || death.generation - upTo.generation) > 0) return false;
  const { class: failureClass, fingerprint } = failure;
  const { jobId, reason } = death;
  const own = { jobId, reason, type, service, tenant, key, class: failureClass, fingerprint };
  for (const field of ["jobId", "type", "service", "tenant", "key", "class", "reason", "fingerprint"] as const) {
    if (filter[field] !== undefined && filter[field] !== own[field]) return false;
  }
  if (filter.aside && tables.jobs.get(death.jobId)?.expiresAt !== LATEST_INSTANT) return false;
  const { redrive, outcome } = filter;
  const isSent = death.redrivenAt !== null;
  if (isSent && !filter.redriven && redrive === undefined && outcome === undefined) return false;
  if (redrive !== undefined && death.redrive !== redrive) return false;
  if (outcome !== undefined && (!isSent || (death.outcome ?? "none") !== outcome)) return false;
  if (diedAt < (filter.from ?? diedAt) || diedAt >= (filter.until ?? diedAt + 1)) return false;
  if (filter.text === undefined) return true;
  const text = lower(filter.text);
  return [failure.name, failure.message].some((said) => lower(plainText(said)).includes(text));
}

/** Lower case for A to Z; other characters stay. */
function lower(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
