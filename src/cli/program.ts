// The commander program: the flags that all commands share, and the commands, loaded or by name only.
import { Command, Help } from "commander";
import { DEFAULT_STORE, STORE_URLS } from "../core/store-urls.ts";
import { put } from "../system/output.ts";
import { openCli } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { EXIT_HELP } from "./exit.ts";
import type { Io } from "./io.ts";
import { VERSION } from "../core/version.ts";

/** Adds every command but loads only those asked for. `done` receives the exit code of the command that ran. */
export async function addCommands(
  program: Command,
  io: Io,
  { isLoaded, done }: { isLoaded(name: string): boolean; done(code: number): void },
): Promise<void> {
  for (const { name, summary, load } of COMMANDS) {
    const command = program.command(name).summary(summary).description(summary);
    if (isLoaded(name)) (await load()).register(openCli({ program, command, io, done }));
  }
}

/**
 * A command in the list of its group. A command of the first list may not be loaded; its entry says which arguments it
 * takes.
 */
function listed(command: Command): string {
  const entry = command.parent?.parent ? undefined : COMMANDS.find(({ name }) => name === command.name());
  if (!entry) return new Help().subcommandTerm(command);
  return entry.takes === undefined ? entry.name : `${entry.name} ${entry.takes}`;
}

/** The program with the flags that all commands share, and without any command. */
export function emptyProgram(io: Io): Command {
  const width = (sink: Io["stdout"]): number => Math.min(100, sink.columns || 80);
  const program = new Command();
  program
    .name(io.program)
    .description("The retry queue for TypeScript: run jobs, see why they failed, send them back to work.")
    .option(
      "--store <url>",
      `database of the jobs: ${STORE_URLS.join(" or ")} (REDRIVE_STORE; default ${DEFAULT_STORE})`,
    )
    .option("--config <file>", "config file (default: redrive.config.{ts,js,mjs,yaml,yml})")
    .option("--json", "print one JSON document on stdout, secrets included")
    .option("--redact", "with --json: mask values that look like secrets")
    .option("--quiet", "no progress and no summary; results are still printed")
    .option("--log <format>", "form of log lines: text, or json for one object a line (REDRIVE_LOG_FORMAT)")
    .version(VERSION, "-V, --version", "show the version")
    .helpOption("-h, --help", "show help")
    .helpCommand("help [command]", "show help for a command")
    .addHelpText("after", EXIT_HELP)
    .addHelpText("after", "\nLogs go to stderr; REDRIVE_LOG=debug|info|warn|error|silent sets the level.")
    .addHelpText("after", "A failed try is a warning, a dead letter an error.")
    .addHelpText("after", "The event log names who acts by REDRIVE_ACTOR, or by user and host.")
    .configureHelp({
      showGlobalOptions: true,
      subcommandTerm: listed,
      // A command between has flags of its own, such as the page of a list; they are none of the commands below it.
      visibleGlobalOptions: (command) => (command === program ? [] : program.options.filter(({ hidden }) => !hidden)),
    })
    .configureOutput({
      writeOut: (text) => void put(io.stdout, "text", text),
      writeErr: (text) => void put(io.stderr, "text", text),
      // `complain` reports errors, once.
      outputError: () => undefined,
      getOutHelpWidth: () => width(io.stdout),
      getErrHelpWidth: () => width(io.stderr),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .exitOverride();
  return program;
}
