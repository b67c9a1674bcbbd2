// Roles with few rights: one that has a schema and nothing else, one that may not make tables, and what each is told.
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { defineJob, PermanentError } from "../../../src/index.ts";
import { importBuilt } from "../../support/built.ts";
import { createBench } from "../../support/cli.ts";
import { testSchema } from "../../support/postgres-queue.ts";
import { freshSchema, sql } from "../../support/postgres-world.ts";

const SERVER = inject("postgres18");
const OLD = inject("postgres15");
const SERVERS = [["18", SERVER] as const, ...(OLD ? [["15", OLD] as const] : [])];

/** A role that may log in and nothing else; gives the URL of the store as it uses it. */
async function testRole(server: string): Promise<{ readonly role: string; readonly url: (schema: string) => string }> {
  const role = freshSchema();
  await sql(server, `create role ${role} login`);
  onTestFinished(async () => void (await sql(server, `drop owned by ${role}; drop role ${role}`)));
  const url = new URL(server);
  url.username = role;
  return { role, url: (schema) => `${url.href}?schema=${schema}` };
}

describe("a role that may make no schema", () => {
  it.each([
    ["owns one", "create schema @ authorization %"],
    ["may use one", "create schema @; grant usage, create on schema @ to %"],
  ])("but %s fills it", async (_how, made) => {
    for (const [version, server] of SERVERS) {
      const { schema } = testSchema(server);
      const { role, url } = await testRole(server);
      await sql(server, made.replaceAll("@", schema).replaceAll("%", role));
      const bench = createBench();
      const { out } = await bench.run(["migrate", "--plan", "--store", url(schema)]);
      expect(out, version).not.toContain("create schema");
      const { code, err } = await bench.run(["enqueue", "thing", "{}", "--store", url(schema)]);
      expect({ code, err }, version).toMatchObject({ code: 0 });
      expect((await bench.run(["doctor", "--store", url(schema)])).out, version).toMatch(/ok +rights/);
    }
  });

  it("and may not even make tables in one is told both ways out", async () => {
    const { schema } = testSchema(SERVER);
    const { role, url } = await testRole(SERVER);
    await sql(SERVER, `create schema ${schema}; grant usage on schema ${schema} to ${role}`);
    const { code, err } = await createBench().run(["enqueue", "thing", "{}", "--store", url(schema)]);
    expect({ code, err }).toEqual({
      code: 3,
      err: expect.stringMatching(
        /permission denied for schema.*create schema NAME authorization ROLE.*redrive migrate/,
      ),
    });
    expect(await sql(SERVER, "select from pg_tables where schemaname = $1", [schema])).toEqual([]);
  });
});

describe("a role that may not make tables", () => {
  it("is told what to do where nobody has migrated yet", async () => {
    const { schema } = testSchema(SERVER);
    const { url } = await testRole(SERVER);
    const { code, err } = await createBench().run(["enqueue", "thing", "{}", "--store", url(schema)]);
    expect({ code, err }).toEqual({ code: 3, err: expect.stringMatching(/permission denied.*redrive migrate.*grant/) });
    expect(await sql(SERVER, "select from pg_namespace where nspname = $1", [schema])).toEqual([]);
  });

  it.each([
    ["no rights at all", ""],
    ["only a view of the schema", "grant usage on schema @ to %"],
    ["only reading", "grant usage on schema @ to %; grant select on all tables in schema @ to %"],
  ])("is told what is missing where it has %s", async (_what, grants) => {
    const { schema, url: owner } = testSchema(SERVER);
    const { role, url } = await testRole(SERVER);
    const bench = createBench();
    await bench.run(["migrate", "--store", owner]);
    if (grants) await sql(SERVER, grants.replaceAll("@", schema).replaceAll("%", role));
    const jobs = bench.write(
      "jobs.mjs",
      `import { defineJob } from "redrive"; export const thing = defineJob("thing", { run: () => 1 });`,
    );
    for (const args of [
      ["enqueue", "thing", "{}"],
      ["drain", "--jobs", jobs],
      ["worker", "--jobs", jobs],
    ]) {
      const { code, err } = await bench.run([...args, "--store", url(schema)]);
      expect({ code, err }).toEqual({ code: 3, err: expect.stringMatching(/^error: .*permission denied.*grant/) });
    }
    expect(await sql(SERVER, `select count(*)::int as n from ${schema}.job`)).toEqual([{ n: 0 }]);
  });

  it.each([
    [
      "only reading",
      "select on all tables in schema @",
      /missing: insert, update, delete on attempt; .*; and \d+ more/,
    ],
    ["no sequence", "select, insert, update, delete on all tables in schema @", /missing: usage on lane_n\n/],
  ])("learns from the doctor what it lacks where it has %s", async (_what, grant, missing) => {
    const { schema, url: owner } = testSchema(SERVER);
    const { role, url } = await testRole(SERVER);
    const bench = createBench();
    await bench.run(["migrate", "--store", owner]);
    expect((await bench.run(["doctor", "--store", owner])).out).toMatch(/ok +rights/);
    await sql(SERVER, `grant usage on schema ${schema} to ${role}; grant ${grant.replace("@", schema)} to ${role}`);
    const { code, out } = await bench.run(["doctor", "--store", url(schema)]);
    expect({ code, out }).toEqual({ code: 1, out: expect.stringMatching(missing) });
    expect(out).toMatch(/problem +rights .*\n +→ grant/);
  });

  it("is told that it may not even connect", async () => {
    const { schema } = testSchema(SERVER);
    const { url } = await testRole(SERVER);
    const database = freshSchema();
    await sql(SERVER, `create database ${database}`);
    await sql(SERVER, `revoke connect on database ${database} from public`);
    onTestFinished(async () => void (await sql(SERVER, `drop database ${database} with (force)`)));
    const closed = Object.assign(new URL(url(schema)), { pathname: `/${database}` });
    const { code, err } = await createBench().run(["stats", "--store", closed.href]);
    expect({ code, err }).toEqual({ code: 3, err: expect.stringContaining("CONNECT privilege") });
  });

  it("does everything with the grants of the guide", async () => {
    const { schema, url: owner } = testSchema(SERVER);
    const { role, url } = await testRole(SERVER);
    await createBench().run(["migrate", "--store", owner]);
    await sql(
      SERVER,
      `grant usage on schema ${schema} to ${role};
       grant select, insert, update, delete on all tables in schema ${schema} to ${role};
       grant usage on all sequences in schema ${schema} to ${role};`,
    );
    const library = await importBuilt<typeof import("../../../src/index.ts")>("index.js");
    const fix = { now: false };
    const work = defineJob("work", {
      async run({ n }: { n: number }, ctx) {
        await ctx.progress(n);
        if (!fix.now && n === 1) throw new PermanentError("not yet");
        return n;
      },
    });
    const redrive = await library.createRedrive({ store: url(schema), jobs: [work], log: "silent" });
    onTestFinished(() => redrive.close());
    await redrive.enqueueMany(work, [{ n: 0 }, { n: 1 }, { n: 2 }], { each: ({ n }) => ({ key: `k${n}` }) });
    await redrive.pause({ kind: "type", name: "work" });
    await redrive.resume({ kind: "type", name: "work" });
    expect(await redrive.worker({ poll: 20 }).drain({ grace: 0 })).toMatchObject({ completed: 2, dead: 1 });
    fix.now = true;
    await redrive.deadLetters.retry({ type: "work" });
    expect(await redrive.worker({ poll: 20 }).drain({ grace: 0 })).toMatchObject({ completed: 1, dead: 0 });
    const types = [{ type: "work", finishedMs: 0, deadMs: 0 }];
    expect(await redrive.store.retain({ types, after: 0, limit: 100 })).toMatchObject({ moved: 3 });
    const retention = { keep: { finishedMs: 0, deadMs: 0 }, types: [], keyMs: 0, limit: 100, isFirst: true };
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await redrive.store.prune(retention)).toMatchObject({ completed: 3 });
    expect((await createBench().run(["doctor", "--store", url(schema)])).code).toBe(0);
  });
});
