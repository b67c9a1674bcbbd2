// The recipes for schedulers: each is what its scheduler can read, as far as that can be told here, and the call in it is
// one that the command line takes and carries out.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { parse } from "yaml";
import { type Bench, createBench } from "./support/cli.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const RECIPES = join(ROOT, "docs", "recipes");
const PROGRAM = join(ROOT, "bin", "redrive.js");
const read = (name: string): string => readFileSync(join(RECIPES, name), "utf8");
const has = (command: string): boolean => spawnSync(command, ["--version"]).status === 0;

const JOBS = `
import { defineJob, PermanentError } from "redrive";
export const enrich = defineJob("enrich", { async run({ name, ms = 0 }) {
  await new Promise((done) => setTimeout(done, ms));
  if (name === "gone") throw new PermanentError("no such customer");
  return { upper: name.toUpperCase() };
} });
`;

/** A project as the recipes expect it, with the input in its folder and in one that plays the volume. */
function project(records = '{"id":1,"name":"ada"}\n'): Bench {
  const bench = createBench();
  bench.write("jobs.mjs", JOBS);
  bench.write("redrive.config.yaml", "store: sqlite:./records.db\njobs: ./jobs.mjs\n");
  mkdirSync(join(bench.folder, "data"));
  for (const name of ["incoming.ndjson", "data/incoming.ndjson"]) bench.write(name, records);
  return bench;
}

/** Carries the call out; its output has a line. */
async function takes(words: readonly string[], output: string): Promise<void> {
  expect(words.slice(0, 3)).toEqual(["npx", "redrive", "drain"]);
  const bench = project();
  const { code, out, err } = await bench.run(words.slice(2), { env: { REDRIVE_LOG: "error" } });
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toContain("1 record: 1 new, 0 known");
  expect(readFileSync(join(bench.folder, output), "utf8")).toContain('"upper":"ADA"');
}

describe("docs/recipes", () => {
  it("has what the pages name, and nothing else", () => {
    const pages = ["schedulers.md", "services.md"].map((name) =>
      readFileSync(join(ROOT, "docs", "guides", name), "utf8"),
    );
    const page = pages.join("\n");
    const named = [...page.matchAll(/\]\(\.\.\/recipes\/([^)]+)\)/g)].map(([, name]) => name);
    expect(new Set(named)).toEqual(new Set(readdirSync(RECIPES)));
  });

  it("systemd units: verified where systemd is, and their call is taken", async () => {
    const units = ["redrive-drain.service", "redrive-drain.timer"].map((name) => join(RECIPES, name));
    if (has("systemd-analyze")) {
      const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", ...units], { encoding: "utf8" });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      const [, when = ""] = /^OnCalendar=(.+)$/m.exec(read("redrive-drain.timer")) ?? [];
      const { stdout } = spawnSync("systemd-analyze", ["calendar", when], { encoding: "utf8" });
      expect(stdout).toMatch(/Normalized form: \*-\*-\* \*:00\/5:00/);
    }
    const [, call = ""] = /^ExecStart=\/usr\/bin\/env (.+)$/m.exec(read("redrive-drain.service")) ?? [];
    await takes(call.split(" "), "results.ndjson");
  });

  it("an Airflow DAG: Python that compiles, and its call is taken", async () => {
    const check = "import ast, sys; ast.parse(sys.stdin.read(), sys.argv[1])";
    const name = "airflow_dag.py";
    if (has("python3")) {
      const python = spawnSync("python3", ["-c", check, name], { input: read(name), encoding: "utf8" });
      expect([python.status, python.stderr]).toEqual([0, ""]);
    }
    expect(read(name)).toMatch(/schedule="\*\/5 \* \* \* \*"[^]*max_active_runs=1[^]*retries=0/);
    const [, call = ""] = /bash_command="(.+)"/.exec(read(name)) ?? [];
    await takes(call.split(" "), "results.ndjson");
  });

  it("a Kubernetes CronJob: one pod at a time, no retries, and its call is taken", async () => {
    const manifest = parse(read("cronjob.yaml"));
    const { jobTemplate, ...schedule } = manifest.spec;
    expect([manifest.apiVersion, manifest.kind]).toEqual(["batch/v1", "CronJob"]);
    expect(schedule).toMatchObject({ schedule: "*/5 * * * *", concurrencyPolicy: "Forbid" });
    const pod = jobTemplate.spec.template.spec;
    expect([jobTemplate.spec.backoffLimit, pod.restartPolicy]).toEqual([0, "Never"]);
    const [{ command, args, volumeMounts }] = pod.containers;
    expect(pod.volumes.map(({ name }: { name: string }) => name)).toEqual([volumeMounts[0].name]);
    const words = [...command, ...args].map((word: string) => word.replace(volumeMounts[0].mountPath, "data"));
    await takes(words, "data/results.ndjson");
  });
});

/** The shell line or the Python of a recipe in a folder, with this checkout for the installed package. */
const installed = (text: string, folder: string): string =>
  text.replaceAll("/srv/records", folder).replaceAll("npx redrive", `${process.execPath} ${PROGRAM}`);

describe.skipIf(process.platform === "win32")("recipes that run as they are", () => {
  it.skipIf(!has("flock"))("crontab: results, a word about a failed turn, and no second turn at once", async () => {
    const lines = read("crontab").trim().split("\n");
    const [, when, line = ""] = /^((?:\S+ ){5})(.+)$/.exec(lines.at(-1) ?? "") ?? [];
    expect(when).toBe("*/5 * * * * ");
    expect(line).not.toContain("%"); // A line break for cron.
    const bench = project('{"id":1,"name":"ada","ms":2500}\n{"id":2,"name":"gone"}\n');
    const turn = () => {
      const child = spawn("/bin/sh", ["-c", installed(line, bench.folder)], { stdio: ["ignore", "pipe", "pipe"] });
      let said = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
      return new Promise<string>((resolve) => {
        child.once("close", () => resolve(said));
      });
    };
    const first = turn();
    await vi.waitUntil(() => existsSync(join(bench.folder, "results.ndjson.part")), 100_000);
    expect(await turn()).toBe("");
    expect(await first).toContain("2 runs: 1 completed, 0 retried, 1 dead");
    expect(readFileSync(join(bench.folder, "results.ndjson"), "utf8")).toContain('"upper":"ADA"');
    expect(await turn()).toBe(""); // Nothing died: nobody gets a mail.
  });

  it.skipIf(!has("python3"))("Databricks: one run at a time, and the task fails where the call fails", async () => {
    const job = JSON.parse(read("databricks-job.json"));
    expect(job).toMatchObject({ max_concurrent_runs: 1, schedule: { quartz_cron_expression: "0 0/5 * * * ?" } });
    const [{ max_retries, spark_python_task: task }] = job.tasks;
    expect(max_retries).toBe(0);
    expect(task.python_file).toMatch(/\/databricks_drain\.py$/);
    const [home, ...words] = task.parameters as string[];
    const local = words.map((word) => word.replace("/Volumes/main/records", "."));
    await takes(local, "data/results.ndjson");
    const bench = project('{"id":1,"name":"gone"}\n');
    const call = [bench.folder, process.execPath, PROGRAM, ...local.slice(2)];
    expect(home).toBe("/Workspace/Shared/records");
    const run = () => spawnSync("python3", [join(RECIPES, "databricks_drain.py"), ...call], { encoding: "utf8" });
    expect(run()).toMatchObject({ status: 1, stderr: expect.stringContaining("returned non-zero exit status 1") });
    expect(run()).toMatchObject({ status: 0, stdout: expect.stringContaining("1 record: 0 new, 1 known") });
  });
});
