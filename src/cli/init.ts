// `redrive init`: writes a starter into the working directory. Never overwrites a file.
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RedriveError } from "../core/errors.ts";
import { invalid } from "../core/options.ts";
import { jsonText } from "../operate/json-form.ts";
import { put } from "../system/output.ts";
import { type Cli, examples } from "./command.ts";
import { CONFIG_NAMES } from "../config/find-config.ts";
import type { GlobalOptions } from "./session.ts";

const CONFIG = (jobs: string): string => `# Config of Redrive. Flags and environment variables override this file.
store: sqlite:./redrive.db
jobs: ./${jobs}
defaults:
  maxAttempts: 5
  backoff: { kind: exponential, initial: 2s, multiplier: 2, max: 1m, jitter: full }
worker:
  concurrency: 10
`;

const JOBS = (input: string): string => `// Job types: every export made by defineJob is one.
import { defineJob, PermanentError } from "redrive";

export const hello = defineJob("hello", {
  timeout: "30s",
  async run(input${input}, context) {
    // Thrown errors are retried with a growing delay; a PermanentError is not retried.
    if (!input.name) throw new PermanentError("name is missing");
    context.log.info({ job: context.job.id }, \`hello, \${input.name}\`);
    return { greeted: input.name };
  },
});
`;

/** Registers `init`. */
export function register(cli: Cli): void {
  const command = cli.command.option("--js", "JavaScript instead of TypeScript");
  examples(command, cli, ["init"]);
  cli.actBare(command, async (_args, flags) => {
    const { io } = cli;
    const { json, quiet } = cli.program.opts<GlobalOptions>();
    const jobs = flags.js === true ? "jobs.mjs" : "jobs.ts";
    const files: [string, string][] = [
      [jobs, JOBS(flags.js === true ? "" : ": { name?: string }")],
      ["redrive.config.yaml", CONFIG(jobs)],
    ];
    const names = new Set([...files.map(([name]) => name), ...CONFIG_NAMES]);
    const there = [...names].filter((name) => existsSync(join(io.cwd, name)));
    if (there.length > 0)
      throw invalid(
        "init",
        "a folder without these files",
        there.join(" and "),
        "remove or rename them; nothing was written",
      );
    writeAll(files, io.cwd);
    const steps = [
      `${io.program} enqueue hello '{"name":"Ada"}'`,
      `${io.program} enqueue hello '{}'`,
      `${io.program} drain`,
      `${io.program} dlq list`,
    ];
    if (json) put(io.stdout, "json", `${jsonText({ files: files.map(([name]) => name), next: steps })}\n`);
    else if (!quiet)
      put(
        io.stdout,
        "text",
        `Wrote ${files.map(([name]) => name).join(" and ")}. Next:\n\n${steps.map((step) => `  ${step}\n`).join("")}`,
      );
    return 0;
  });
}

/** Writes all of the files or none. */
function writeAll(files: readonly [string, string][], folder: string): void {
  const written: string[] = [];
  try {
    for (const [name, text] of files) {
      const path = join(folder, name);
      writeFileSync(path, text, { flag: "wx" });
      written.push(path);
    }
  } catch (cause) {
    for (const path of written) rmSync(path, { force: true });
    const said = cause instanceof Error ? cause.message : String(cause);
    const message = `init: expected a folder that can be written; got ${folder} (${said}); run it in another folder`;
    throw new RedriveError("invalid_argument", message, { cause });
  }
}
