// The command line as a function: arguments and a world in, an exit code out. Every error ends here and becomes one line
// and one code; nothing else in this folder decides how a call ends.
import { Command, Help } from "commander";
import { put } from "../system/output.ts";
import { openCli } from "./command.ts";
import { withCommands } from "./command-names.ts";
import { COMMANDS, type CommandEntry } from "./commands.ts";
import { complain } from "./complain.ts";
import { EXIT, EXIT_HELP } from "./exit.ts";
import type { Io } from "./io.ts";
import { VERSION } from "./version.ts";

/** Runs one call of the command line; resolves to its exit code and never rejects. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  let code: number = EXIT.ok;
  const program = describe(new Command(), io);
  try {
    // Whichever of the words is the command: its module is among those that are loaded.
    const words = new Set(argv);
    for (const entry of COMMANDS)
      await addCommand(program, io, entry, { isLoaded: words.has(entry.name), done: (end) => (code = end) });
    // Typed without any command: the help is the answer, but a script has made a mistake.
    if (argv.length === 0) program.help({ error: true });
    await program.parseAsync(asFlag(argv, program), { from: "user" });
    return code;
  } catch (error) {
    return complain(withCommands(error, program, argv), io, asksForJson(argv));
  }
}

/** The whole command line with every command loaded, for those who want to see all of it. */
export async function wholeProgram(io: Io): Promise<Command> {
  const program = describe(new Command(), io);
  for (const entry of COMMANDS) await addCommand(program, io, entry, { isLoaded: true, done: () => undefined });
  return program;
}

async function addCommand(
  program: Command,
  io: Io,
  { name, summary, load }: CommandEntry,
  { isLoaded, done }: { readonly isLoaded: boolean; readonly done: (code: number) => void },
): Promise<void> {
  const command = program.command(name).summary(summary).description(summary);
  if (isLoaded) (await load()).register(openCli({ program, command, io, done }));
}

/** A command in the list of its group; those of the first list are not loaded, and say here what they take. */
function listed(command: Command): string {
  const entry = command.parent?.parent ? undefined : COMMANDS.find(({ name }) => name === command.name());
  if (!entry) return new Help().subcommandTerm(command);
  return entry.takes === undefined ? entry.name : `${entry.name} ${entry.takes}`;
}

/** The arguments without those of the command that `batch` runs. */
export function ownArguments(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf("--");
  return end < 0 ? argv : argv.slice(0, end);
}

/** True where the call asks for JSON. */
export function asksForJson(argv: readonly string[]): boolean {
  return ownArguments(argv).includes("--json");
}

/** `help dlq retry` as `dlq retry --help`: commander's own looks one word deep. A command that is not there is refused. */
function asFlag(argv: readonly string[], program: Command): string[] {
  const [first, ...rest] = argv;
  if (first !== "help" || rest.length === 0) return [...argv];
  let group: Command | undefined = program;
  for (const word of rest) {
    if (!group || group.commands.length === 0 || word.startsWith("-")) break;
    group = group.commands.find((command) => command.name() === word);
  }
  return group ? [...rest, "--help"] : rest;
}

function describe(program: Command, io: Io): Command {
  const width = (sink: Io["stdout"]): number => Math.min(100, sink.columns || 80);
  program
    .name(io.program)
    .description("The retry queue for TypeScript: run jobs, see why they failed, send them back to work.")
    .option(
      "--store <url>",
      "where the jobs live: sqlite:PATH or postgres://… (REDRIVE_STORE; default sqlite:./redrive.db)",
    )
    .option("--config <file>", "config file (default: redrive.config.{ts,js,mjs,yaml,yml})")
    .option("--json", "answer with one JSON document on stdout, secrets included")
    .option("--redact", "with --json: mask what sounds like a secret")
    .option("--quiet", "no progress and no summary; what you ask to see is still shown")
    .version(VERSION, "-V, --version", "show the version")
    .helpOption("-h, --help", "show help")
    .helpCommand("help [command]", "show help for a command")
    .addHelpText("after", EXIT_HELP)
    .addHelpText("after", "\nLogs go to stderr; REDRIVE_LOG=debug|info|warn|error|silent says how much.")
    .configureHelp({ showGlobalOptions: true, subcommandTerm: listed })
    .configureOutput({
      writeOut: (text) => void put(io.stdout, "text", text),
      writeErr: (text) => void put(io.stderr, "text", text),
      // Errors are told once, in `complain`.
      outputError: () => undefined,
      getOutHelpWidth: () => width(io.stdout),
      getErrHelpWidth: () => width(io.stderr),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .exitOverride();
  return program;
}
