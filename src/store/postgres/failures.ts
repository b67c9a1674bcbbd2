// The failures on Postgres, and the rewriting of their fingerprints. A row that another transaction holds is left as it
// is, so that upkeep waits for none.
import type { Value } from "../columns.ts";
import { FAILURE_PLACES, type FailurePlace, failuresText, fingerprintText, keptFailureFromRow } from "../failures.ts";
import type { Store } from "../store.ts";
import { tickMoved } from "./causes.ts";
import type { Context } from "./context.ts";

/** The verbs about kept failures. */
export function failureVerbs({ db, s }: Context): Pick<Store, "failures" | "setFingerprints"> {
  const page = {
    name: "failures_page",
    text: `select count(*), max(seq) from (select seq from ${s}.job where seq > $1 order by seq limit $2) p`,
  };
  const read = { name: "failures", text: failuresText(`${s}.`, "$1", "$2") };
  const write = {
    job: rewriting(s, "job", "t.seq = u.seq"),
    attempt: rewriting(s, "attempt", "t.job_seq = u.seq and t.epoch = u.at"),
    letter: rewriting(s, "dead_letter", "t.job_seq = u.seq and t.generation = u.at", {
      set: ", fingerprint = free.fingerprint",
      returning: "free.had, t.fingerprint, t.type, t.release, t.redriven_at",
      ticked: `, ${tickMoved(s, "done", "redriven_at is null")}`,
    }),
  } satisfies Record<FailurePlace["of"], unknown>;
  return {
    async failures({ after, limit }) {
      const [row] = await db.ask(page, after, limit);
      const [seen, last] = row as [number, number | null];
      if (last === null) return { items: [], next: null };
      const rows = await db.ask(read, after, last);
      return { items: rows.map((each) => keptFailureFromRow(each as Value[])), next: seen === limit ? last : null };
    },
    setFingerprints: (changes) =>
      db.together(async (ask) => {
        let count = 0;
        for (const place of FAILURE_PLACES) {
          const own = changes.filter(({ of }) => of === place);
          if (own.length === 0) continue;
          const [row] = await ask(
            write[place],
            own.map(({ seq }) => seq),
            own.map(({ at }) => at),
            own.map(({ was }) => fingerprintText(was)),
            own.map(({ fingerprint }) => fingerprintText(fingerprint)),
            own.map(({ fingerprint }) => fingerprint),
            own.map(({ was }) => was),
          );
          count += row?.[0] as number;
        }
        return count;
      }),
  };
}

interface LetterParts {
  readonly set: string;
  readonly returning: string;
  readonly ticked: string;
}

const NO_LETTER: LetterParts = { set: "", returning: "1", ticked: "" };

function rewriting(s: string, table: string, isSame: string, letter = NO_LETTER): { name: string; text: string } {
  return {
    name: `set_fingerprints_${table}`,
    text: `with free as materialized (
      select t.ctid as place, u.was, u.new, u.fingerprint, u.had
      from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[])
        as u (seq, at, was, new, fingerprint, had)
      join ${s}.${table} t on ${isSame} where strpos(t.failure, u.was) > 0 for update of t skip locked),
    done as (update ${s}.${table} t set failure = replace(t.failure, free.was, free.new)${letter.set} from free
      where t.ctid = free.place returning ${letter.returning})${letter.ticked}
    select count(*) from done`,
  };
}
