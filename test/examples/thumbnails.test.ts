// examples/thumbnails as a user runs it, at its small size: a real run on SQLite, and on Postgres for `npm run prove -- examples`, with real workers,
// judged by its exit code, by its own books, and by SQL on what it leaves. Its packages are installed once, into its own
// folder. Where ffmpeg is missing the videos are left out, and the name of a test says so.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { reader } from "../support/database-file.ts";
import { freshSchema, sql } from "../support/postgres-world.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const EXAMPLE = join(ROOT, "examples", "thumbnails");
const ffmpeg = spawnSync("ffmpeg", ["-version"]).status === 0;

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const folder = mkdtempSync(join(tmpdir(), "redrive-thumbnails-"));
const env = { ...process.env, THUMBNAILS_FOLDER: folder, NO_COLOR: "1" };
const children = new Set<ChildProcess>();
afterAll(() => {
  // A group each, so that workers end with the run they belong to.
  for (const { pid } of children) if (pid !== undefined) process.kill(-pid, "SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a file of the example to its end. */
async function run(...args: string[]): Promise<Ended> {
  const child = spawn(process.execPath, ["start.mjs", ...args], { cwd: EXAMPLE, env, detached: true, stdio: "pipe" });
  children.add(child);
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (text) => (stdout += text));
  child.stderr.on("data", (text) => (stderr += text));
  const code = await new Promise<number | null>((resolve) => {
    child.once("close", resolve);
  });
  children.delete(child);
  return { code, stdout, stderr };
}

/** Installs what the lockfile names, unless it is there; as scripts/ready.mjs does for the checkout. */
function install(): void {
  const packages = (file: string): Record<string, { version?: string }> =>
    JSON.parse(readFileSync(join(EXAMPLE, file), "utf8")).packages;
  const installed = "node_modules/.package-lock.json";
  const wanted = packages("package-lock.json");
  if (existsSync(join(EXAMPLE, installed))) {
    const have = packages(installed);
    const names = ["node_modules/sharp", "node_modules/jiti"];
    if (names.every((name) => have[name]?.version === wanted[name]?.version)) return;
  }
  const cli = process.env.npm_execpath ?? "";
  const [command, first] = cli.endsWith("npm-cli.js") ? [process.execPath, [cli]] : ["npm", []];
  const npm = (...args: string[]) =>
    spawnSync(command, [...first, ...args, "--no-audit", "--no-fund"], { cwd: EXAMPLE, encoding: "utf8" });
  const { status, stderr } = npm("ci");
  if (status === 0) return;
  // Where the lockfile lacks packages of this platform; npm install keeps to the rest of it.
  const again = npm("install", "--no-save");
  if (again.status !== 0) throw new Error(`npm ci and npm install failed in ${EXAMPLE}:\n${stderr}\n${again.stderr}`);
}

const images = 12;
const [broken, missing] = [ffmpeg ? 3 : 2, 2];
const jobs = images + (ffmpeg ? 2 : 0);
const dead = broken + 1;
const completed = jobs - dead;

function expectBalanced({ code, stdout, stderr }: Ended): void {
  expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: "" });
  const books = stdout.split("The books\n")[1]?.split("\n\n")[0]?.split("\n") ?? [];
  expect(books).toHaveLength(8);
  expect(books.filter((line) => !line.startsWith("  ✓ "))).toEqual([]);
  expect(books[0]).toContain(`${jobs} jobs for ${jobs} objects = ${completed} completed + ${dead} dead`);
}

/** The questions of queries.sql for one kind of store. */
function questions(store: "sqlite" | "postgres"): string[] {
  const other = store === "sqlite" ? "(postgres)" : "(sqlite)";
  const text = readFileSync(join(EXAMPLE, "queries.sql"), "utf8");
  const titles = [...text.matchAll(/\n\n-- (.*)\n/g)].map(([, title]) => title ?? "");
  return titles.filter((title) => !title.includes(other)).map((title) => title.replace(` (${store})`, ""));
}

function expectAnswered({ code, stdout, stderr }: Ended, asked: readonly string[]): void {
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  // Only titles are not indented.
  expect(stdout.split("\n").filter((line) => /^\S/.test(line))).toEqual(asked);
  expect(asked).toHaveLength(6);
  expect(stdout).not.toContain("(no rows)");
  expect(stdout).toMatch(
    /ObjectStoreError: the object store is busy: photo-06.jpg\n +at .*\n[^]*\{"key":"photo-06.jpg"\}/,
  );
}

describe.skipIf(process.platform === "win32")("examples/thumbnails", () => {
  let ended: Ended;
  beforeAll(async () => {
    install();
    ended = await run("main.ts", "--small");
  }, 180_000);

  const ask = (text: string) => reader(join(folder, "redrive.db"))(text);

  it("ends well, with balanced books", () => expectBalanced(ended));

  it(ffmpeg ? "makes thumbnails of videos too" : "leaves videos out, because ffmpeg is not installed here", () => {
    expect(ended.stdout.includes("ffmpeg is missing")).toBe(!ffmpeg);
    const videos = [
      ["completed", 1],
      ["failed", 1],
    ];
    const sql = "select status, count(*) from jobs where type = 'video-thumbnail' group by status order by status";
    expect(ask(sql)).toEqual(ffmpeg ? videos : []);
  });

  it("gives every dead letter its class and its reason", () => {
    const sql = `select status, failure_type, reason, count(*), max(attempts) = max_attempts from dead_letters
      group by status, failure_type, reason order by status, failure_type`;
    expect(ask(sql)).toEqual([
      ["dead", "transient", "exhausted", 1, 1],
      ["dead", "validation", "permanent", broken, 0],
      ["redriven", "permanent", "permanent", missing, 0],
    ]);
  });

  it("recovers exactly the jobs whose files were missing", () => {
    const sql =
      "select j.status, d.last_error like 'no such object: %' from jobs j join dead_letters d on d.job_id = j.id where j.generation = 2";
    expect(ask(sql)).toEqual(Array.from({ length: missing }, () => ["completed", 1]));
    expect(ask("select max(generation), count(*) from jobs")).toEqual([[2, jobs]]);
  });

  it("tries again what the store refused, and succeeds at the third attempt", () => {
    const sql = `select status, error_class, delay_ms from attempts where job_id in
      (select job_id from attempts where status = 'completed' and attempt = 3) order by epoch`;
    expect(ask(sql)).toEqual([
      ["failed", "transient", 200],
      ["failed", "transient", 200],
      ["completed", null, null],
    ]);
  });

  it("leaves three thumbnails of every completed job, and none of others", () => {
    const files = readdirSync(join(folder, "thumbnails"), { recursive: true, withFileTypes: true });
    expect(files.filter((entry) => entry.isFile())).toHaveLength(completed * 3);
    const keys = ask("select json_extract(payload, '$.key') from jobs where status = 'completed' order by 1").flat();
    expect(readdirSync(join(folder, "thumbnails")).toSorted()).toEqual(keys);
    expect(ask("select count(*) from jobs where json_extract(result, '$.thumbnail_key') like '%/256.webp'")).toEqual([
      [completed],
    ]);
  });

  it("logs each step of a job that fails for good", () => {
    const log = ended.stdout.split("used up its attempts\n")[1]?.split("\n\n")[0]?.replace(/\s+/g, " ") ?? "";
    expect(log).toMatch(
      /processing \(attempt 1\/3\).*requeueing for attempt 2 in 200ms.*processing \(attempt 3\/3\).*moved to the dead letter queue/,
    );
  });

  it("answers every question of queries.sql", async () => {
    const [[job]] = ask("select job_id from dead_letters where reason = 'exhausted'") as [[string]];
    expectAnswered(await run("show-queries.ts", "--job", job), questions("sqlite"));
  });

  it("refuses an unknown option and changes nothing", async () => {
    const { code, stdout, stderr } = await run("main.ts", "--smal");
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/--smal[\s\S]*Usage: npm start/);
    expect(existsSync(join(folder, "redrive.db"))).toBe(true);
  });

  it("says what to install where it is missing", () => {
    const empty = join(folder, "thumbnails");
    copyFileSync(join(EXAMPLE, "start.mjs"), join(empty, "start.mjs"));
    const { status, stderr } = spawnSync(process.execPath, ["start.mjs", "main.ts"], { cwd: empty, encoding: "utf8" });
    expect(status).toBe(1);
    expect(stderr).toMatch(/- sharp is not installed.*run: npm ci\n/);
    expect(stderr).not.toMatch(/\n +at /);
  });

  it("fits its types", () => {
    const compiler = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    expect(spawnSync(process.execPath, [compiler, "-p", EXAMPLE], { encoding: "utf8" }).stdout).toBe("");
  });

  it("names no download host in its lockfile", () => {
    expect(readFileSync(join(EXAMPLE, "package-lock.json"), "utf8")).not.toMatch(/"resolved": "http/);
  });
});

const isPostgresAsked = process.env["REDRIVE_PROVE"] === "examples" && process.platform !== "win32";
describe.runIf(isPostgresAsked)("examples/thumbnails on Postgres", () => {
  const server = inject("postgres18");
  const schema = freshSchema();
  const store = `${server}?schema=${schema}`;
  let ended: Ended;
  beforeAll(async () => {
    install();
    ended = await run("main.ts", "--small", "--store", store);
  }, 180_000);
  afterAll(async () => void (await sql(server, `drop schema if exists ${schema} cascade`)));

  it("ends well, with balanced books", () => expectBalanced(ended));

  it("leaves what the books say", async () => {
    const found = await sql(server, `select status, count(*)::int from ${schema}.jobs group by status order by status`);
    expect(found).toEqual([
      { status: "completed", count: completed },
      { status: "failed", count: dead },
    ]);
    expect(await sql(server, `select count(*)::int from ${schema}.dead_letters where status = 'redriven'`)).toEqual([
      { count: missing },
    ]);
  });

  it("answers every question of queries.sql", async () => {
    const [row] = await sql(server, `select job_id from ${schema}.dead_letters where reason = 'exhausted'`);
    const answers = await run("show-queries.ts", "--store", store, "--job", String(row?.["job_id"]));
    expectAnswered(answers, questions("postgres"));
  });
});
