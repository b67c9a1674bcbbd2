// `redrive demo`: the way to the demonstration, which is loaded only when it is asked for.
import { RedriveError } from "../core/errors.ts";
import { type Cli, defined, examples, numeric, textual } from "./command.ts";
import type { DemoIo, DemoOptions } from "./demo.ts";
import type { GlobalOptions } from "./session.ts";

type Demo = (options: DemoOptions, io: DemoIo) => Promise<number>;

/** Registers `demo`. */
export function register(cli: Cli): void {
  const command = cli.command
    .description(
      "Watch Redrive on a bad day, with nothing to set up. It has a store and jobs of its own: --store and --config do not count here.",
    )
    .option("--jobs <n>", "how many jobs, 20 to 2000 (default 360)")
    .option("--seed <n>", "another day (default 7)")
    .option("--file <path>", "a new database file (default .redrive/demo.db)");
  examples(command, cli, ["demo", "demo --jobs 100 --json"]);
  cli.actBare(command, async (_args, flags) => {
    // A computed address: whatever is wrong with the demonstration breaks no other command.
    const address = new URL("./demo.js", import.meta.url).href;
    const module = (await import(address).catch((cause: unknown) => {
      throw new RedriveError("invalid_argument", "demo: this build has no demonstration; build it again", { cause });
    })) as { readonly demo: Demo };
    const { json, quiet } = cli.program.opts<GlobalOptions>();
    const own = { jobs: numeric(flags.jobs), seed: numeric(flags.seed), file: textual(flags.file) };
    return module.demo(defined({ json, quiet, ...own }), cli.io);
  });
}
