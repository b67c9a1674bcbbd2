// The failures in memory, and the rewriting of their fingerprints.
import type { FailurePlace, KeptFailure } from "../failures.ts";
import { CauseChanges, moveLetter, NO_WORKER } from "../causes.ts";
import type { Verbs } from "../verbs.ts";
import { placeOf, tick } from "./causes.ts";
import type { DeathRow, Row, Tables } from "./tables.ts";

/** The verbs about kept failures. */
export function failureVerbs(tables: Tables): Pick<Verbs, "failures" | "setFingerprints"> {
  const jobOf = (wanted: number): Row | undefined => [...tables.jobs.values()].find(({ seq }) => seq === wanted);
  return {
    failures({ after, limit }) {
      const rows = [...tables.jobs.values()].filter(({ seq }) => seq > after).sort((a, b) => a.seq - b.seq);
      const page = rows.slice(0, limit);
      return {
        items: page.flatMap((row) => failuresOf(tables, row)),
        next: page.length === limit ? (page.at(-1)?.seq ?? null) : null,
      };
    },
    setFingerprints(changes) {
      const counts = new CauseChanges();
      const done = changes.filter(({ was, fingerprint, ...place }) => {
        const row = jobOf(place.seq);
        const holder = row && holderOf(tables, row, place);
        if (!holder?.failure || holder.failure.fingerprint !== was) return false;
        const letter = place.of === "letter" ? (holder as DeathRow) : null;
        if (letter?.redrivenAt === null) moveLetter(counts, placeOf(tables, letter), fingerprint);
        Object.assign(holder, { failure: { ...holder.failure, fingerprint } });
        return true;
      });
      tick(tables, counts, NO_WORKER, tables.clock());
      return done.length;
    },
  };
}

function failuresOf(tables: Tables, { id, seq, failure }: Row): KeptFailure[] {
  const own: KeptFailure[] = failure ? [{ of: "job", seq, at: 0, failure }] : [];
  for (const record of tables.attempts.get(id) ?? [])
    own.push({ of: "attempt", seq, at: record.epoch, failure: record.failure });
  for (const death of tables.deaths.filter(({ jobId }) => jobId === id))
    own.push({ of: "letter", seq, at: death.generation, failure: death.failure });
  return own;
}

function holderOf(tables: Tables, row: Row, { of, at }: FailurePlace): Pick<Row, "failure"> | undefined {
  if (of === "job") return row;
  if (of === "attempt") return tables.attempts.get(row.id)?.find(({ epoch }) => epoch === at);
  return tables.deaths.find(({ jobId, generation }) => jobId === row.id && generation === at);
}
