// How a schema comes to be: by many processes at once, by hand from the printed plan; and what
// happens to one that is not ours, or newer than this program.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { createRedrive } from "../../../src/index.ts";
import { createPostgresStore } from "../../../src/store/postgres/index.ts";
import { MIGRATIONS } from "../../../src/store/postgres/schema.ts";
import { builtModule } from "../../support/built.ts";
import { createBench } from "../../support/cli.ts";
import { newJob } from "../../support/new-job.ts";
import { testSchema } from "../../support/postgres-queue.ts";
import { freshSchema, sql } from "../../support/postgres-world.ts";

const SERVER = inject("postgres18");
const OLD = inject("postgres15");
const SERVERS = [["18", SERVER] as const, ...(OLD ? [["15", OLD] as const] : [])];
const VERSION = MIGRATIONS.length;
const BUILT = builtModule("cli/process.js").slice(0, -"cli/process.js".length);
const CLI = fileURLToPath(new URL("../../support/cli-process.mjs", import.meta.url));

/** Everything a schema is made of, and how many rows its tables have. */
async function picture(server: string, schema: string): Promise<unknown> {
  const made = await sql(
    server,
    `select c.relname, c.relkind, a.attname, format_type(a.atttypid, a.atttypmod), pg_get_viewdef(c.oid) as view
     from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
     where n.nspname = $1 order by 1, 2, a.attnum`,
    [schema],
  );
  const tables = [...new Set(made.filter(({ relkind }) => relkind === "r").map(({ relname }) => String(relname)))];
  const rows: Record<string, unknown> = {};
  for (const table of tables) rows[table] = await sql(server, `select count(*)::int as n from ${schema}.${table}`);
  return { made, rows };
}

/** A database of its own on the server. */
async function testDatabase(): Promise<string> {
  const name = freshSchema();
  await sql(SERVER, `create database ${name}`);
  onTestFinished(async () => void (await sql(SERVER, `drop database ${name} with (force)`)));
  const url = new URL(SERVER);
  url.pathname = `/${name}`;
  return url.href;
}

async function enqueueElsewhere(store: string): Promise<{ readonly code: number; readonly output: string }> {
  const child = spawn(process.execPath, [CLI, "enqueue", "thing", "{}", "--store", store], {
    env: { ...process.env, REDRIVE_BUILT: BUILT },
  });
  let output = "";
  child.stdout.on("data", (text) => (output += text));
  child.stderr.on("data", (text) => (output += text));
  const [code] = (await once(child, "close")) as [number];
  return { code, output };
}

describe("a schema that is not there", () => {
  it.each(SERVERS)("is made once on Postgres %s, however many begin at the same time", async (_version, server) => {
    const { schema, url } = testSchema(server);
    const stores = Array.from({ length: 20 }, () => createPostgresStore({ url: server, schema, maxConnections: 2 }));
    onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))));
    const writes = stores.map((store) => store.enqueue([newJob()]));
    const ends = await Promise.all([enqueueElsewhere(url), enqueueElsewhere(url), enqueueElsewhere(url)]);
    expect(
      ends.map(({ code }) => code),
      ends.map(({ output }) => output).join(""),
    ).toEqual([0, 0, 0]);
    for (const answers of await Promise.all(writes)) expect(answers).toMatchObject([{ kind: "created" }]);
    const [first] = stores as [(typeof stores)[0]];
    expect((await first.count()).queued).toBe(23);
    const versions = MIGRATIONS.map((_step, at) => ({ version: at + 1 }));
    expect(await sql(server, `select version from ${schema}.migration order by 1`)).toEqual(versions);
  });

  it("is not made by looking at the plan", async () => {
    const { schema, url } = testSchema(SERVER);
    const bench = createBench();
    expect(await bench.run(["migrate", "--plan", "--store", url])).toMatchObject({ code: 0, err: "" });
    expect((await bench.json(["migrate", "--plan", "--store", url])).document).toMatchObject({
      from: 0,
      to: VERSION,
      readableBy: 1,
    });
    expect(await sql(SERVER, "select from pg_namespace where nspname = $1", [schema])).toEqual([]);
  });

  it("made by hand from the plan is the one that the program makes", async () => {
    const [byHand, itself] = [await testDatabase(), await testDatabase()];
    const bench = createBench();
    const { out } = await bench.run(["migrate", "--plan", "--store", byHand]);
    await sql(byHand, out);
    await bench.run(["migrate", "--store", itself]);
    expect(await picture(byHand, "redrive")).toEqual(await picture(itself, "redrive"));
    expect(await bench.run(["migrate", "--store", byHand])).toMatchObject({
      code: 0,
      out: expect.stringContaining("nothing to do"),
    });
    await bench.run(["enqueue", "thing", "{}", "--store", byHand]);
    expect((await bench.json(["stats", "--store", byHand])).document.jobs.queued).toBe(1);
  });
});

describe("a schema that is newer than the program", () => {
  it("is refused by everything with a clear message, and left alone", async () => {
    const { schema, url } = testSchema(SERVER);
    const bench = createBench();
    await bench.run(["enqueue", "thing", "{}", "--store", url]);
    await sql(SERVER, `insert into ${schema}.migration (version, readable_by) values (${VERSION + 1}, ${VERSION + 1})`);
    const before = await picture(SERVER, schema);
    const { pathname, host } = new URL(SERVER);
    const message = `The schema ${schema} at ${host}${pathname} has schema version ${VERSION + 1}, for programs that know version ${VERSION + 1} or newer; this Redrive knows versions up to ${VERSION}. Update redrive, or restore a backup from before the upgrade.`;
    for (const args of [["migrate"], ["migrate", "--plan"], ["stats"], ["enqueue", "thing", "{}"], ["jobs", "list"]])
      expect(await bench.run([...args, "--store", url]), args.join(" ")).toEqual({
        code: 3,
        out: "",
        err: expect.stringContaining(message),
      });
    await expect(createRedrive({ store: url, log: "silent" })).rejects.toMatchObject({
      code: "store_unusable",
      message,
    });
    expect(await picture(SERVER, schema)).toEqual(before);
  });
});

describe("a schema from before the first release", () => {
  it("is refused in one line, and left alone", async () => {
    const { schema, url } = testSchema(SERVER);
    const bench = createBench();
    await bench.run(["enqueue", "thing", "{}", "--store", url]);
    await sql(SERVER, `alter table ${schema}.migration drop column readable_by`);
    const before = await picture(SERVER, schema);
    for (const args of [["migrate"], ["migrate", "--plan"], ["enqueue", "thing", "{}"]])
      expect(await bench.run([...args, "--store", url]), args.join(" ")).toEqual({
        code: 3,
        out: "",
        err: expect.stringMatching(/^error: .*has a schema from before Redrive 0\.1\.0, .*\n$/),
      });
    expect(await picture(SERVER, schema)).toEqual(before);
  });
});

describe("a schema that lacks a table", () => {
  it("is refused with the names of what is missing, and what to do", async () => {
    const { schema, url } = testSchema(SERVER);
    const bench = createBench();
    await bench.run(["enqueue", "thing", "{}", "--store", url]);
    await sql(SERVER, `drop table ${schema}.job cascade`);
    for (const args of [["migrate"], ["migrate", "--plan"], ["enqueue", "thing", "{}"], ["doctor"]]) {
      const { code, out, err } = await bench.run([...args, "--store", url]);
      expect([args[0], code, `${out}${err}`]).toEqual([args[0], 3, expect.stringContaining("missing: job. Restore")]);
    }
  });
});

describe("a newer schema that this program may use", () => {
  it("is used though a table of this version was dropped from it", async () => {
    const { schema } = testSchema(SERVER);
    const made = createPostgresStore({ url: SERVER, schema });
    onTestFinished(() => made.close());
    await made.migrate();
    const note = `insert into ${schema}.migration (version, readable_by) values (${VERSION + 1}, ${VERSION})`;
    await sql(SERVER, `drop table ${schema}.cell cascade; ${note}`);
    const older = createPostgresStore({ url: SERVER, schema });
    onTestFinished(() => older.close());
    expect(await older.migrate()).toContain(`schema version ${VERSION + 1}, newer than version ${VERSION}`);
  });
});

describe("a schema that lost its version", () => {
  it.each([
    ["with its table of migrations", "drop table @.migration"],
    ["and no row of that table is left", "delete from @.migration"],
    ["because its rows were changed", "update @.migration set version = -version"],
  ])("%s is refused by everything in one way, and left alone", async (_what, text) => {
    const { schema, url } = testSchema(SERVER);
    const bench = createBench();
    await bench.run(["enqueue", "thing", "{}", "--store", url]);
    await sql(SERVER, text.replace("@", schema));
    for (const args of [["migrate"], ["migrate", "--plan"], ["enqueue", "thing", "{}"], ["stats"], ["doctor"]]) {
      const { code, out, err } = await bench.run([...args, "--store", url]);
      const said = expect.stringContaining("has tables of Redrive, but its table migration names no version of them.");
      expect([args.join(" "), code, `${out}${err}`]).toEqual([args.join(" "), 3, said]);
    }
    expect(await sql(SERVER, `select count(*)::int as jobs from ${schema}.job`)).toEqual([{ jobs: 1 }]);
  });

  it("and has no table of ours beside an empty table of migrations is made", async () => {
    const { schema, url } = testSchema(SERVER);
    const ledger = `create table ${schema}.migration (version int primary key, readable_by int not null, applied_at timestamptz not null default now())`;
    await sql(SERVER, `create schema ${schema}; ${ledger}`);
    expect(await createBench().run(["migrate", "--store", url])).toMatchObject({ code: 0, err: "" });
  });
});

describe("a schema of somebody else", () => {
  it.each([
    ["has a table of ours", "create table @.job (id int)"],
    ["has migrations of its own", "create table @.migration (name text, done_at timestamptz)"],
  ])("that %s is refused and left as it was", async (_what, text) => {
    const { schema, url } = testSchema(SERVER);
    await sql(SERVER, `create schema ${schema}; ${text.replace("@", schema)}`);
    const before = await picture(SERVER, schema);
    const { code, err } = await createBench().run(["enqueue", "thing", "{}", "--store", url]);
    expect({ code, err }).toEqual({ code: 3, err: expect.stringContaining("another schema") });
    expect(err.trimEnd().split("\n")).toHaveLength(1);
    expect(await picture(SERVER, schema)).toEqual(before);
  });
});

describe("a database in another encoding", () => {
  const made = async (encoding: string): Promise<string> => {
    const database = freshSchema();
    await sql(SERVER, `create database ${database} encoding '${encoding}' template template0 locale 'C'`);
    onTestFinished(async () => void (await sql(SERVER, `drop database ${database} with (force)`)));
    return Object.assign(new URL(SERVER), { pathname: `/${database}` }).href;
  };

  it("than UTF8 is refused before anything is made in it", async () => {
    const url = await made("LATIN1");
    const { code, err } = await createBench().run(["enqueue", "thing", "{}", "--store", url]);
    expect({ code, err }).toEqual({ code: 3, err: expect.stringMatching(/encoded in LATIN1; Redrive needs UTF8/) });
    expect(await sql(url, "select from pg_namespace where nspname = 'redrive'")).toEqual([]);
  });

  it("that takes bytes as they come will do", async () => {
    const url = await made("SQL_ASCII");
    const bench = createBench();
    expect(await bench.run(["enqueue", "thing", '{"a":"😀ł"}', "--store", url])).toMatchObject({ code: 0 });
    const { document } = await bench.json(["jobs", "list", "--store", url]);
    expect(document.items).toMatchObject([{ payload: { a: "😀ł" } }]);
  });
});
