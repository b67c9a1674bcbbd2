// How SQLite goes about the lists and the prune: by an index and in its order, so that they cost what they return and
// not what is kept.
import { describe, expect, it } from "vitest";
import type { DeadLetterQuery, JobQuery } from "../../../src/store/store.ts";
import { deadLetterVerbs } from "../../../src/store/sqlite/dead-letters.ts";
import type { SqliteDatabase } from "../../../src/store/sqlite/driver.ts";
import { jobVerbs } from "../../../src/store/sqlite/jobs.ts";
import { openLaneNumbers } from "../../../src/store/sqlite/lane-numbers.ts";
import { retentionVerbs } from "../../../src/store/sqlite/retention.ts";
import { connect, inlineStore } from "../../support/database-file.ts";

/** The verbs over a new file, and the plans of the statements that a call prepares. */
async function watched() {
  const { path } = await inlineStore();
  const db = connect(path);
  const prepared: string[] = [];
  const watching: SqliteDatabase = {
    ...db,
    prepare(sql) {
      prepared.push(sql);
      return db.prepare(sql);
    },
  };
  const lanes = openLaneNumbers(watching, Date.now);
  const plansOf = (act: () => unknown): string[] => {
    prepared.length = 0;
    act();
    return prepared.flatMap((sql) => {
      const values = Array<number>(sql.split("?").length - 1).fill(1);
      return db
        .prepare(`explain query plan ${sql}`)
        .all(...values)
        .map((row) => String(row[3]));
    });
  };
  return { plansOf, db: watching, lanes, clock: () => 0 };
}

const SCAN = /^SCAN (j|d|k|job|dead_letter|job_key)\b/;
const WASTE = /^SCAN (j|d|k|job|dead_letter|job_key)\b|TEMP B-TREE/;

describe("a list of jobs", () => {
  it.each<[JobQuery, RegExp]>([
    [{ limit: 5, state: "dead" }, /SEARCH d USING (COVERING )?INDEX dead_letter_live \(job_seq<\?\)/],
    [{ limit: 5, state: "dead", tried: true }, /SEARCH d USING (COVERING )?INDEX dead_letter_live/],
    [{ limit: 5, state: "running" }, /SEARCH j USING INDEX job_ended \(state=\? AND expires_at=\? AND seq<\?\)/],
    [{ limit: 5, key: "k" }, /SEARCH j USING INDEX job_keyed \(key=\? AND seq<\?\)/],
    [{ limit: 5, key: "k", state: "dead" }, /SEARCH j USING INDEX job_keyed/],
    [{ limit: 5, key: "k", state: "completed", due: false }, /SEARCH j USING INDEX job_keyed/],
  ])("%j scans no table and sorts nothing", async (query, index) => {
    const { plansOf, db, lanes, clock } = await watched();
    const verbs = jobVerbs(db, lanes, clock);
    const steps = plansOf(() => verbs.list(query));
    expect(steps.join("\n")).toMatch(index);
    expect(steps.filter((step) => WASTE.test(step))).toEqual([]);
  });

  it.each<[JobQuery, RegExp]>([
    [{ limit: 5, key: "k", type: "t" }, /SEARCH j USING INDEX job_keyed/],
    [{ limit: 5, state: "dead", type: "t" }, /SEARCH d USING (COVERING )?INDEX dead_letter_live/],
    [{ limit: 5, state: "running", type: "t", tenant: "x" }, /SEARCH j USING INDEX job_ended/],
    [{ limit: 5, state: "cancelled" }, /SEARCH j USING INDEX job_ended \(state=\?\)/],
    [{ limit: 5, state: "cancelled", tried: true }, /SEARCH j USING INDEX job_ended \(state=\?\)/],
  ])("%j does not scan the jobs either, although it may sort what it finds", async (query, index) => {
    const { plansOf, db, lanes, clock } = await watched();
    const verbs = jobVerbs(db, lanes, clock);
    const steps = plansOf(() => verbs.list(query));
    expect(steps.join("\n")).toMatch(index);
    expect(steps.filter((step) => SCAN.test(step))).toEqual([]);
  });
});

describe("a list of dead letters", () => {
  it.each<[DeadLetterQuery, RegExp]>([
    [{ limit: 5 }, /SEARCH d USING INTEGER PRIMARY KEY \(rowid<\?\)/],
    [{ limit: 5, oldest: true }, /SEARCH d USING INTEGER PRIMARY KEY \(rowid>\?\)/],
    [{ limit: 5, type: "t", oldest: true }, /SEARCH d USING INDEX dead_letter_type \(type=\? AND seq>\?\)/],
    [{ limit: 5, fingerprint: "f" }, /SEARCH d USING INDEX dead_letter_cause \(fingerprint=\? AND seq<\?\)/],
    [{ limit: 5, sort: "enqueued" }, /SEARCH d USING INDEX dead_letter_live \(job_seq>\?\)/],
    [{ limit: 5, sort: "enqueued", cursor: "1.1.1" }, /SEARCH d USING INDEX dead_letter_live \(job_seq>\?\)/],
    [{ limit: 5, sort: "enqueued", redriven: true }, /SEARCH d USING INDEX \w+ \(\(job_seq,generation\)>\(\?,\?\)\)/],
    [{ limit: 5, sort: "enqueued", fingerprint: "f" }, /INDEX dead_letter_open \(fingerprint=\? AND job_seq>\?\)/],
    [
      { limit: 5, sort: "enqueued", fingerprint: "f", type: "t" },
      /INDEX dead_letter_open \(fingerprint=\? AND job_seq>\?\)/,
    ],
    [{ limit: 5, sort: "enqueued", type: "t" }, /SEARCH d USING INDEX dead_letter_live \(job_seq>\?\)/],
    [{ limit: 5, sort: "enqueued", class: "timeout" }, /SEARCH d USING INDEX dead_letter_live \(job_seq>\?\)/],
    [{ limit: 5, sort: "enqueued", tenant: "x" }, /SEARCH d USING INDEX dead_letter_live \(job_seq>\?\)/],
    [{ limit: 5, sort: "enqueued", service: "s" }, /SEARCH d USING INDEX dead_letter_live \(job_seq>\?\)/],
    [{ limit: 5, sort: "enqueued", from: 1, until: 2 }, /SEARCH d USING INDEX dead_letter_live \(job_seq>\?\)/],
    [{ limit: 5, sort: "enqueued", redrive: "r" }, /INDEX dead_letter_redrive \(redrive=\?/],
    [{ limit: 5, sort: "enqueued", redrive: "r", outcome: "none" }, /INDEX dead_letter_pending \(redrive=\?/],
  ])("%j comes in the order of an index", async (query, index) => {
    const { plansOf, db } = await watched();
    const verbs = deadLetterVerbs(db);
    const steps = plansOf(() => verbs.deadLetters(query));
    expect(steps.join("\n")).toMatch(index);
    expect(steps.filter((step) => WASTE.test(step))).toEqual([]);
  });
});

describe("a prune", () => {
  it("finds jobs and keys by age, without looking at those it keeps", async () => {
    const { plansOf, db, lanes, clock } = await watched();
    const steps = plansOf(() => retentionVerbs(db, lanes, clock)).join("\n");
    expect(steps).toMatch(/SEARCH job USING INDEX job_ended \(state=\? AND expires_at=\?\)/);
    expect(steps).toMatch(/SEARCH job USING INDEX job_ended \(state=\? AND expires_at<\?\)/);
    expect(steps).toMatch(/SEARCH k USING INDEX job_key_gone \(created_at<\?\)/);
    expect(steps).not.toMatch(/SCAN (j|k|job|job_key)\b/);
    expect(steps).not.toMatch(/TEMP B-TREE/);
  });
});
