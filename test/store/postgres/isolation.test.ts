// A role whose transactions are stricter by default than Redrive's: many first starts at once, and workers that meet.
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { createPostgresStore } from "../../../src/store/postgres/index.ts";
import { openDependencies } from "../../../src/store/postgres/dependencies.ts";
import { newJob } from "../../support/new-job.ts";
import { testSchema } from "../../support/postgres-queue.ts";
import { freshSchema, sql } from "../../support/postgres-world.ts";

const SERVER = inject("postgres18");
const OLD = inject("postgres15");
const CASES = ["repeatable read", "serializable"].flatMap((level) =>
  [["18", SERVER] as const, ...(OLD ? [["15", OLD] as const] : [])].map(([version, server]) => ({
    level,
    version,
    server,
  })),
);
const LEVEL = { text: "select current_setting('transaction_isolation')" };

/** The server as a role sees it that is as strict as this, and a schema of its own. */
async function strict(server: string, level: string) {
  const role = freshSchema();
  await sql(
    server,
    `create role ${role} login superuser; alter role ${role} set default_transaction_isolation = '${level}'`,
  );
  const { schema } = testSchema(server);
  onTestFinished(async () => void (await sql(server, `reassign owned by ${role} to postgres; drop role ${role}`)));
  return { schema, url: Object.assign(new URL(server), { username: role }).href };
}

describe.each(CASES)("a role that is $level by default on Postgres $version", ({ level, server }) => {
  it("starts twenty times at once", async () => {
    const { schema, url } = await strict(server, level);
    const pools = Array.from({ length: 5 }, () => new pg.Pool({ connectionString: url, max: 2 }));
    const places = [
      ...pools.map((pool) => ({ pool })),
      ...Array.from({ length: 15 }, () => ({ url, maxConnections: 2 })),
    ];
    const stores = places.map((place) => createPostgresStore({ ...place, schema }));
    onTestFinished(async () => {
      await Promise.all(stores.map((store) => store.close()));
      await Promise.all(pools.map((pool) => pool.end()));
    });
    const writes = await Promise.all(stores.map((store) => store.enqueue([newJob()])));
    for (const answers of writes) expect(answers).toMatchObject([{ kind: "created" }]);
    expect((await stores[0]?.count())?.queued).toBe(20);
  });

  it("does not make our transactions so, nor our statements on connections of our own", async () => {
    const { schema, url } = await strict(server, level);
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    const own = openDependencies({ url, schema }, {});
    const theirs = openDependencies({ pool, schema }, {});
    onTestFinished(async () => {
      await Promise.all([own.db.close(), theirs.db.close()]);
      await pool.end();
    });
    expect(await own.db.ask(LEVEL)).toEqual([["read committed"]]);
    expect(await own.db.together((ask) => ask(LEVEL))).toEqual([["read committed"]]);
    expect(await theirs.db.together((ask) => ask(LEVEL))).toEqual([["read committed"]]);
    expect((await pool.query<{ level: string }>(`${LEVEL.text} as level`)).rows).toEqual([{ level }]);
  });
});
