// The commands of docs/guides/subprocess.md do what the page says.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { importBuilt } from "./support/built.ts";

const page = readFileSync(new URL("../docs/guides/subprocess.md", import.meta.url), "utf8");
const folder = mkdtempSync(join(tmpdir(), "redrive-page-"));
afterAll(() => rmSync(folder, { recursive: true }));

const languages: [string, string, string, "plain" | "lines", boolean][] = [
  ["bash", "bash", "handler.sh", "plain", false],
  ["python", "python3", "handler.py", "lines", false],
  ["js", process.execPath, "handler.mjs", "lines", true],
];

it.each(languages)(
  "%s: good items are done, the missing one dies",
  async (language, program, name, contract, keepAlive) => {
    const text = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(page)?.[1] ?? "";
    expect(text.trim().split("\n").length).toBeLessThanOrEqual(11);
    const file = join(folder, name);
    writeFileSync(file, text);
    if (spawnSync(program, ["--version"]).error) return console.warn(`skipped: there is no ${program}`);
    const { createRedrive, defineJob, immediate, subprocess } =
      await importBuilt<typeof import("../src/index.ts")>("index.js");
    const job = defineJob("extract", {
      maxAttempts: 1,
      backoff: immediate(),
      batch: { size: 4 },
      runBatch: subprocess({ command: [program, file], contract, keepAlive, timeout: "20s" }),
    });
    await using redrive = await createRedrive({ store: "memory:", jobs: [job], log: "silent" });
    await redrive.enqueueMany(
      job,
      ["a", "b", "c", "d", "e", "missing", "f"].map((code) => ({ code })),
    );
    expect(await redrive.worker().drain({ grace: 0 })).toMatchObject({ completed: 6, dead: 1 });
    const { items } = await redrive.deadLetters.list();
    expect(items.map(({ job: { payload } }) => payload)).toEqual(['{"code":"missing"}']);
    expect(items[0]?.failure.message).toContain("no video missing");
  },
);
