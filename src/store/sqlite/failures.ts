// The failures on SQLite, and the rewriting of their fingerprints.
import { CauseChanges, moveLetter, NO_WORKER } from "../causes.ts";
import { type FailurePlace, failuresText, fingerprintText, keptFailureFromRow } from "../failures.ts";
import type { Verbs } from "../verbs.ts";
import { ticker } from "./causes.ts";
import type { SqliteDatabase } from "./driver.ts";

/** The verbs about kept failures. */
export function failureVerbs(db: SqliteDatabase, clock: () => number): Pick<Verbs, "failures" | "setFingerprints"> {
  const page = db.prepare("select count(*), max(seq) from (select seq from job where seq > ? order by seq limit ?)");
  const read = db.prepare(
    `with span (first, last) as (values (?, ?)) ${failuresText("", "(select first from span)", "(select last from span)")}`,
  );
  const write: Record<FailurePlace["of"], ReturnType<SqliteDatabase["prepare"]>> = {
    job: db.prepare(rewriting("job", "seq = ? and 0 = ?")),
    attempt: db.prepare(rewriting("attempt", "job_seq = ? and epoch = ?")),
    letter: db.prepare(rewriting("dead_letter", "job_seq = ? and generation = ?")),
  };
  const live = db.prepare(
    "select fingerprint, type, coalesce(release, '') from dead_letter where job_seq = ? and generation = ? and redriven_at is null",
  );
  const mark = db.prepare("update dead_letter set fingerprint = ? where job_seq = ? and generation = ?");
  const tick = ticker(db);
  const moved = (counts: CauseChanges, seq: number, at: number, to: string): void => {
    const [row] = live.all(seq, at) as [string, string, string][];
    if (row) moveLetter(counts, { fingerprint: row[0], type: row[1], release: row[2] }, to);
    mark.run(to, seq, at);
  };
  return {
    failures({ after, limit }) {
      const [[seen, last] = [0, null]] = page.all(after, limit) as [number, number | null][];
      if (last === null) return { items: [], next: null };
      return { items: read.all(after, last).map(keptFailureFromRow), next: seen === limit ? last : null };
    },
    setFingerprints(changes) {
      const counts = new CauseChanges();
      const count = changes.reduce((sum, { of, seq, at, was, fingerprint }) => {
        const old = fingerprintText(was);
        const done = write[of].run(old, fingerprintText(fingerprint), seq, at, old);
        if (of === "letter" && done > 0) moved(counts, seq, at, fingerprint);
        return sum + done;
      }, 0);
      tick(counts, NO_WORKER, clock());
      return count;
    },
  };
}

/** Parameters: the old and the new fingerprint in the text, the job, the epoch or generation, and the old one again. */
function rewriting(table: string, where: string): string {
  return `update ${table} set failure = replace(failure, ?, ?) where ${where} and instr(failure, ?) > 0`;
}
