// The command line as a function: arguments and an Io in, an exit code out. Every error ends here and becomes one line
// and one code; no other file in this folder decides how a call ends.
import { type Command, CommanderError } from "commander";
import { complain } from "./complain.ts";
import { EXIT } from "./exit.ts";
import type { Io } from "./io.ts";
import { addCommands, emptyProgram } from "./program.ts";

/** Runs one call of the command line; resolves to its exit code and never rejects. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  let code: number = EXIT.ok;
  const program = emptyProgram(io);
  try {
    // Loads the module of every argument that names a command; the actual command is among them.
    const words = new Set(argv);
    await addCommands(program, io, { isLoaded: (name) => words.has(name), done: (end) => (code = end) });
    // Without a command, print the help and fail, because a script that does this has made a mistake.
    if (argv.length === 0) program.help({ error: true });
    await program.parseAsync(asFlag(argv, program), { from: "user" });
    return code;
  } catch (error) {
    const isJsonLog = asksForJsonLog(argv, io.env);
    return complain(withCommands(error, program, argv), { ...io, isJsonLog }, asksForJson(argv));
  }
}

/** The arguments before those of the command that `batch` runs. */
export function ownArguments(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf("--");
  return end < 0 ? argv : argv.slice(0, end);
}

/** True where the call asks for JSON. */
export function asksForJson(argv: readonly string[]): boolean {
  return ownArguments(argv).includes("--json");
}

/** True where log lines are JSON; a wrong format is refused elsewhere. */
export function asksForJsonLog(argv: readonly string[], { REDRIVE_LOG_FORMAT: set = "" }: Io["env"]): boolean {
  const ours = ownArguments(argv);
  const at = ours.findLastIndex((word) => word === "--log" || word.startsWith("--log="));
  if (at === -1) return set.toLowerCase() === "json";
  return (ours[at]?.startsWith("--log=") ? ours[at].slice("--log=".length) : ours[at + 1])?.toLowerCase() === "json";
}

/**
 * Turns `help dlq retry` into `dlq retry --help`, because commander's own help goes one word deep. Refuses an unknown
 * command.
 */
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

/** Adds the names of the possible commands to an error about a missing or unknown one; returns any other error unchanged. */
function withCommands(error: unknown, program: Command, argv: readonly string[]): unknown {
  if (!(error instanceof CommanderError) || error.exitCode === 0) return error;
  const group = groupOf(program, argv);
  const names = group.commands.map((command) => command.name()).join(", ");
  const path = group === program ? "" : ` of ${group.name()}`;
  if (error.code === "commander.help")
    return new CommanderError(error.exitCode, error.code, `expected a command${path}: ${names}; got none`);
  if (error.code !== "commander.unknownCommand") return error;
  return new CommanderError(
    error.exitCode,
    error.code,
    `${error.message.replace(/\n/g, " ")}; commands${path}: ${names}`,
  );
}

/** The innermost group of commands that the arguments name. */
function groupOf(program: Command, argv: readonly string[]): Command {
  let group = program;
  for (const word of argv) {
    const next = group.commands.find((command) => command.name() === word);
    if (next && next.commands.length > 0) group = next;
  }
  return group;
}
