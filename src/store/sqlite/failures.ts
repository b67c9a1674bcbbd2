// The failures on SQLite, and the rewriting of their fingerprints.
import { type FailurePlace, failuresText, fingerprintText, keptFailureFromRow } from "../failures.ts";
import type { Verbs } from "../verbs.ts";
import type { SqliteDatabase } from "./driver.ts";

/** The verbs about kept failures. */
export function failureVerbs(db: SqliteDatabase): Pick<Verbs, "failures" | "setFingerprints"> {
  const page = db.prepare("select count(*), max(seq) from (select seq from job where seq > ? order by seq limit ?)");
  const read = db.prepare(
    `with span (first, last) as (values (?, ?)) ${failuresText("", "(select first from span)", "(select last from span)")}`,
  );
  const write: Record<FailurePlace["of"], ReturnType<SqliteDatabase["prepare"]>> = {
    job: db.prepare(rewriting("job", "seq = ? and 0 = ?")),
    attempt: db.prepare(rewriting("attempt", "job_seq = ? and epoch = ?")),
    letter: db.prepare(rewriting("dead_letter", "job_seq = ? and generation = ?")),
  };
  const mark = db.prepare("update dead_letter set fingerprint = ? where job_seq = ? and generation = ?");
  return {
    failures({ after, limit }) {
      const [[seen, last] = [0, null]] = page.all(after, limit) as [number, number | null][];
      if (last === null) return { items: [], next: null };
      return { items: read.all(after, last).map(keptFailureFromRow), next: seen === limit ? last : null };
    },
    setFingerprints: (changes) =>
      changes.reduce((count, { of, seq, at, was, fingerprint }) => {
        const old = fingerprintText(was);
        const done = write[of].run(old, fingerprintText(fingerprint), seq, at, old);
        if (of === "letter" && done > 0) mark.run(fingerprint, seq, at);
        return count + done;
      }, 0),
  };
}

/** Parameters: the old and the new fingerprint in the text, the job, the epoch or generation, and the old one again. */
function rewriting(table: string, where: string): string {
  return `update ${table} set failure = replace(failure, ?, ?) where ${where} and instr(failure, ?) > 0`;
}
