// `redrive demo`: starts the shop of examples/shop, a separate program that uses Redrive as any other program would.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { RedriveError } from "../core/errors.ts";
import { runAttached } from "../system/processes.ts";
import { put } from "../system/output.ts";
import { type Cli, examples, textual } from "./command.ts";
import type { Sink } from "./io.ts";
import type { GlobalOptions } from "./session.ts";

/** Registers `demo`. */
export function register(cli: Cli): void {
  const command = cli.command
    .description(
      "Watch Redrive handle a bad day; needs no setup. The demo uses its own store and jobs and ignores --store and --config.",
    )
    .option("--jobs <n>", "how many jobs, 20 to 2000 (default 360)")
    .option("--seed <n>", "seed of the random events (default 7)")
    .option("--file <path>", "a new database file (default .redrive/demo.db)");
  examples(command, cli, ["demo", "demo --jobs 100 --json"]);
  cli.actBare(command, async (_args, flags) => {
    const program = fileURLToPath(new URL("../examples/shop/main.js", import.meta.url));
    if (!existsSync(program))
      throw new RedriveError("invalid_argument", "demo: this build has no demonstration; build it again");
    const { json, quiet } = cli.program.opts<GlobalOptions>();
    const given = (["jobs", "seed", "file"] as const).flatMap((name) => {
      const value = textual(flags[name]);
      return value === undefined ? [] : [`--${name}=${value}`];
    });
    const args = [...given, ...(json ? ["--json"] : []), ...(quiet ? ["--quiet"] : [])];
    const passOn = (sink: Sink) => sink.fd ?? ((text: string) => void put(sink, "data", text));
    const { stdout, stderr, cwd } = cli.io;
    const child = runAttached(program, args, cwd, { stdout: passOn(stdout), stderr: passOn(stderr) });
    // A terminal signals both processes; a signal to this process alone is passed on.
    const quieten = cli.io.onSignal(child.signal);
    try {
      return await child.ended;
    } finally {
      quieten();
    }
  });
}
