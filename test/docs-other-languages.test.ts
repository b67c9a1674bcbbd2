// The code of docs/guides/other-languages.md does what the page says, against `redrive up` and a real Postgres. Programs that
// are not installed are left out; Go compiles for long and runs with `npm run prove -- examples`.
import { spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, inject, it, onTestFinished } from "vitest";
import { createBench } from "./support/cli.ts";
import { startCli, until } from "./support/cli-processes.ts";
import { openQueue } from "./support/postgres-queue.ts";
import { freshSchema } from "./support/postgres-world.ts";
import { take } from "./support/runs.ts";

const PAGE = readFileSync(new URL("../docs/guides/other-languages.md", import.meta.url), "utf8");
const CLIENTS = fileURLToPath(new URL("../clients/python", import.meta.url));
const TOKEN = "t".repeat(40);
const code = (language: string): string[] =>
  [...PAGE.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map(([, text = ""]) => text);
const has = (program: string, ...args: string[]): boolean => spawnSync(program, args).status === 0;

const LANGUAGES: readonly (readonly [
  language: string,
  file: string,
  command: readonly string[],
  isThere: boolean,
  says: RegExp,
])[] = [
  ["bash", "calls.sh", ["bash"], has("curl", "--version"), /"id":"clip-1"[^]*"line":3/],
  [
    "python",
    "calls.py",
    ["python3"],
    has("python3", "-c", "import sys; sys.exit(sys.version_info < (3, 10))"),
    /^completed \{'made': 'e\.mp4'\}/,
  ],
  [
    "go",
    "main.go",
    ["go", "run"],
    process.env["REDRIVE_PROVE"] === "examples" && has("go", "version"),
    /^201 \{"id":"clip-go"/,
  ],
  ["php", "calls.php", ["php"], has("php", "-r", "exit(function_exists('curl_init') ? 0 : 1);"), /"duplicate":false/],
];

it("the programs enqueue, wait and get their answers from a server", { timeout: 180_000 }, async () => {
  const bench = createBench();
  const job = 'export const thumbnail = defineJob("thumbnail", { run: ({ file }) => ({ made: file }) });';
  bench.write("jobs.mjs", `import { defineJob } from "redrive";\n${job}\n`);
  const server = startCli(bench, ["up", "--jobs", "jobs.mjs", "--port", "0", "--json"], { REDRIVE_TOKEN: TOKEN });
  await until(
    () => server.text.out.includes("\n"),
    () => server.text.err,
  );
  const { url } = JSON.parse(server.text.out) as { url: string };
  for (const [language, file, command, isThere, says] of LANGUAGES) {
    const [text = "", ...more] = code(language);
    expect([text.length > 100, more], language).toEqual([true, []]);
    if (!isThere) continue;
    writeFileSync(join(bench.folder, file), language === "bash" ? `set -e\n${text}` : text);
    const own = { REDRIVE_URL: url, REDRIVE_TOKEN: TOKEN, PYTHONPATH: CLIENTS, PYTHONDONTWRITEBYTECODE: "1" };
    const [program = "", ...args] = command;
    const child = spawn(program, [...args, file], { cwd: bench.folder, env: { ...process.env, ...own } });
    onTestFinished(() => void child.kill("SIGKILL"));
    let [out, err] = ["", ""];
    child.stdout.on("data", (part: Buffer) => (out += part.toString()));
    child.stderr.on("data", (part: Buffer) => (err += part.toString()));
    const exit = await new Promise((resolve) => child.on("close", resolve));
    expect({ exit, err }, `${language}: ${out}`).toEqual({ exit: 0, err: "" });
    expect(out, language).toMatch(says);
  }
});

it("the SQL enqueues in a transaction, from a trigger, and with the rights of a producer", async () => {
  const queue = await openQueue(inject("postgres18"));
  const [table, role] = [freshSchema(), freshSchema()];
  const own = (text: string): string =>
    text
      .replaceAll("redrive.", "@.")
      .replaceAll("schema redrive", "schema @")
      .replaceAll("video", table)
      .replace(/to shop/g, `to ${role}`);
  const [call = "", trigger = "", many = "", rights = "", ...more] = code("pgsql");
  expect(more).toEqual([]);
  await queue.sql(`create table ${table} (file text); create role ${role}`);
  onTestFinished(async () => {
    await queue.sql(
      `drop table ${table}; drop function if exists ${table}_changed; drop owned by ${role}; drop role ${role}`,
    );
  });
  await queue.sql(own(call));
  await queue.sql(own(trigger));
  await queue.sql(`insert into ${table} values ('b.mp4')`);
  expect((await take(queue.store)).map(({ payload }) => payload)).toEqual(['{"file":"b.mp4"}']);
  expect(await queue.sql(own(many))).toMatchObject([
    { file: "a.mp4", duplicate: true, state: "queued" },
    { file: "b.mp4", duplicate: false, state: "queued" },
  ]);
  await queue.sql(own(rights));
  await queue.sql(`set role ${role}; select @.enqueue('thumbnail', '1'); reset role`);
  expect(await queue.store.count()).toMatchObject({ queued: 3 });
});
