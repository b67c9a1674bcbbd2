// The suite over the Postgres store on the newest server, and what is to say about the statements it sent.
import { describe, expect, inject, it } from "vitest";
import { settleStatements } from "../../src/store/postgres/settle-statements.ts";
import { openWaker, wakeNames } from "../../src/store/postgres/wake.ts";
import { openQueue } from "../support/postgres-queue.ts";
import { postgresWorld } from "../support/postgres-world.ts";
import { listsBehindLocks, lockClauses, sentStatements } from "../support/statements.ts";
import { withPg } from "../support/transaction-kinds.ts";
import { exercise } from "./exercise.ts";

const sent = sentStatements();

exercise("postgres 18", () => postgresWorld(inject("postgres18")));

/** A lane is sealed when it was retired so long ago that no write to it is under way, so that an old look is as good. */
const MAY_READ = /^update s\.lane set retired_seq = /;

/** What was sent, and what settles send only where another transaction holds their rows. */
const known = (): string[] => {
  const settles = Object.values(settleStatements("s", openWaker(wakeNames("s"))));
  const texts = settles.flatMap((each) => ("text" in each ? each : Object.values(each))).map(({ text }) => text);
  return [...sent, ...texts];
};

describe("a statement that locks rows", () => {
  it("is sent in a transaction of the caller too", async () => {
    const { redrive, pool } = await openQueue(inject("postgres18"));
    await withPg(pool, (tx) => redrive.enqueue("work", 1, { tx }));
    expect([...sent].filter((text) => text.includes("for key share"))).not.toEqual([]);
  });

  it("reads no other table for its columns", () => {
    const wrong = known().filter((text) => listsBehindLocks(text).length > 0);
    expect(wrong.filter((text) => !MAY_READ.test(text))).toEqual([]);
    expect(wrong).toHaveLength(1);
  });

  it("is one of those above, wherever one stands in the source", () => {
    const clauses = lockClauses("src/store/postgres");
    expect(clauses.length).toBeGreaterThan(15);
    const all = known();
    expect(clauses.filter((clause) => !all.some((text) => text.includes(clause)))).toEqual([]);
  });

  it("is known by its text", () => {
    const state = "(select state from s.job j where j.id = k.job_id)";
    const locks = `select k.key, ${state} from s.job_key k order by k.key`;
    const joins = "select k.key, j.state from s.job_key k join s.job j on j.id = k.job_id for update of";
    expect(listsBehindLocks(`${locks} for update of k`)).toEqual([`select k.key, ${state} `]);
    expect(listsBehindLocks(`${locks} for update of k skip locked`)).toHaveLength(1);
    expect(listsBehindLocks(`with a as (${locks} for share) select 1 from s.job`)).toHaveLength(1);
    expect(listsBehindLocks(`${joins} k`)).toEqual(["select k.key, j.state "]);
    expect(listsBehindLocks(`${joins} k, j`)).toEqual([]);
    expect(listsBehindLocks(`update s.job_key set gone = true returning ${state}`)).toHaveLength(1);
    expect(listsBehindLocks(`update s.job_key k set holder = ${state} where k.gone`)).toHaveLength(1);
    expect(
      listsBehindLocks(`insert into s.job_key as k (key) values ($1) on conflict do update set holder = ${state}`),
    ).toHaveLength(1);
    expect(listsBehindLocks(locks)).toEqual([]);
    expect(listsBehindLocks(`update s.job_key k set gone = true where exists ${state}`)).toEqual([]);
    expect(listsBehindLocks("select version, (select floor(1)) from s.control for update")).toEqual([]);
  });
});
