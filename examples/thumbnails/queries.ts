// Runs queries.sql on the store of a run, with the driver that Redrive itself uses: the SQLite inside Node or
// better-sqlite3, and pg for Postgres. Reads only.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

/** A question, how it is asked, and what was answered. */
export interface Answered {
  readonly title: string;
  readonly sql: string;
  readonly rows: readonly Row[];
}

type Row = Readonly<Record<string, unknown>>;

interface Database {
  all(sql: string): Promise<Row[]>;
  close(): Promise<void>;
}

/** Asks every question of queries.sql; `job` is the one whose stack trace is wanted. */
export async function askAll(store: string, job: string): Promise<Answered[]> {
  if (!/^[\w-]+$/.test(job)) throw new Error(`job: expected the id of a job; got ${JSON.stringify(job)}`);
  const database = await open(store);
  try {
    const answers: Answered[] = [];
    for (const { title, sql } of questions(store.startsWith("sqlite:") ? "sqlite" : "postgres"))
      answers.push({ title, sql, rows: await database.all(sql.replaceAll(":job", `'${job}'`)) });
    return answers;
  } finally {
    await database.close();
  }
}

/** The id of the newest dead letter; null where there is none. */
export async function newestDeath(store: string): Promise<string | null> {
  const database = await open(store);
  try {
    const [row] = await database.all("select job_id from dead_letters order by created_at desc, job_id limit 1");
    return row === undefined ? null : String(row["job_id"]);
  } finally {
    await database.close();
  }
}

function questions(dialect: "sqlite" | "postgres"): { readonly title: string; readonly sql: string }[] {
  const blocks = readFileSync(new URL("queries.sql", import.meta.url), "utf8")
    .trim()
    .split("\n\n")
    .slice(1);
  return blocks.flatMap((block) => {
    const [, title = "", only, sql = ""] = /^-- (.*?)(?: \((\w+)\))?\n([\s\S]*);$/.exec(block) ?? [];
    return only === undefined || only === dialect ? [{ title, sql }] : [];
  });
}

function open(store: string): Promise<Database> {
  return store.startsWith("sqlite:") ? openSqlite(store.slice("sqlite:".length)) : openPostgres(store);
}

// Drivers are looked for where Redrive finds them.
const load = createRequire(createRequire(import.meta.url).resolve("redrive/package.json"));

interface SqliteDriver {
  prepare(sql: string): { all(): Row[] };
  close(): void;
}

async function openSqlite(path: string): Promise<Database> {
  const inNode = Number(process.versions.node.split(".")[0]) >= 24;
  const driver = load(inNode ? "node:sqlite" : "better-sqlite3") as
    | (new (
        path: string,
        options: object,
      ) => SqliteDriver)
    | { readonly DatabaseSync: new (path: string, options: object) => SqliteDriver };
  const Driver = "DatabaseSync" in driver ? driver.DatabaseSync : driver;
  const database = new Driver(path, inNode ? { readOnly: true } : { readonly: true });
  return { all: async (sql) => database.prepare(sql).all(), close: async () => database.close() };
}

interface PostgresDriver {
  readonly Client: new (options: {
    readonly connectionString: string;
  }) => {
    connect(): Promise<void>;
    query(sql: string, values?: unknown[]): Promise<{ readonly rows: Row[] }>;
    end(): Promise<void>;
  };
}

async function openPostgres(connectionString: string): Promise<Database> {
  const { Client } = load("pg") as PostgresDriver;
  const client = new Client({ connectionString });
  await client.connect();
  const schema = new URL(connectionString).searchParams.get("schema") ?? "redrive";
  await client.query("select set_config('search_path', $1, false)", [schema]);
  await client.query("set default_transaction_read_only to on");
  return { all: async (sql) => (await client.query(sql)).rows, close: () => client.end() };
}
