// The suite over the Postgres store, on the newest server and on the oldest that is supported.
import { describe, expect, inject, it } from "vitest";
import { postgresWorld } from "../support/postgres-world.ts";
import { listsBehindLocks, sentStatements } from "../support/statements.ts";
import { exercise } from "./exercise.ts";

const sent = sentStatements();

exercise("postgres 18", () => postgresWorld(inject("postgres18")));

const old = inject("postgres15");
if (old) exercise("postgres 15", () => postgresWorld(old));
else describe("postgres 15", () => it.skip("needs Debian's postgresql-15; npm brings 18 only", () => undefined));

describe("a statement that may wait for rows", () => {
  it("reads no other table for its columns", () => {
    expect([...sent].filter((text) => listsBehindLocks(text).length > 0)).toEqual([]);
  });

  it("is known by its text", () => {
    const state = "(select state from s.job j where j.id = k.job_id)";
    const locks = `select k.key, ${state} from s.job_key k order by k.key`;
    expect(listsBehindLocks(`${locks} for update of k`)).toEqual([`select k.key, ${state} `]);
    expect(listsBehindLocks(`with a as (${locks} for share) select 1 from s.job`)).toHaveLength(1);
    expect(listsBehindLocks(`update s.job_key set gone = true returning ${state}`)).toHaveLength(1);
    expect(listsBehindLocks(locks)).toEqual([]);
    // These never wait.
    expect(listsBehindLocks(`${locks} for update of k skip locked`)).toEqual([]);
    expect(listsBehindLocks("select version, (select floor(1)) from s.control for update")).toEqual([]);
  });
});
