// Errors about a missing or unknown command: they list the commands that are possible at that place.
import { type Command, CommanderError } from "commander";

/** Adds the names of the possible commands to such an error; returns any other error unchanged. */
export function withCommands(error: unknown, program: Command, argv: readonly string[]): unknown {
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
