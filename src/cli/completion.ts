// `redrive completion`: prints a script with which a shell completes commands and flags. The script is made from the
// same registry as the help; it reads no store, neither now nor at the Tab key.
import { Argument, type Command, type Option } from "commander";
import { jsonText } from "../operate/json-form.ts";
import { put } from "../system/output.ts";
import { type Cli, examples } from "./command.ts";
import { type CompletionPlace, COMPLETION_SCRIPTS } from "./completion-scripts.ts";
import { addCommands, emptyProgram } from "./program.ts";
import type { GlobalOptions } from "./session.ts";

const SHELLS = Object.keys(COMPLETION_SCRIPTS) as (keyof typeof COMPLETION_SCRIPTS)[];

const NOTES = `
The script completes a command called redrive. Load it when your shell starts:
  bash  eval "$(redrive completion bash)"       in ~/.bashrc
  zsh   eval "$(redrive completion zsh)"        in ~/.zshrc, after compinit
  fish  redrive completion fish | source        in ~/.config/fish/config.fish`;

/** Registers `completion`. */
export function register(cli: Cli): void {
  const command = cli.command
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS))
    .addHelpText("after", NOTES);
  examples(command, cli, ["completion bash", "completion fish > ~/.config/fish/completions/redrive.fish"]);
  cli.actBare(command, async ([name]) => {
    const shell = SHELLS.find((known) => known === name) ?? "bash";
    const program = emptyProgram(cli.io);
    await addCommands(program, cli.io, { isLoaded: () => true, done: () => undefined });
    const script = COMPLETION_SCRIPTS[shell](placesOf(program, [], []));
    if (cli.program.opts<GlobalOptions>().json) put(cli.io.stdout, "json", `${jsonText({ shell, script })}\n`);
    else put(cli.io.stdout, "text", script);
    return 0;
  });
}

/** A command and all below it, each with the words that may follow it. */
function placesOf(command: Command, path: readonly string[], global: readonly Option[]): CompletionPlace[] {
  const help = command.createHelp();
  const groups = help.visibleCommands(command).filter((each) => each.name() !== "help");
  const own = help.visibleOptions(command);
  const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const place: CompletionPlace = {
    path,
    names: [
      ...groups.map((each) => ({ name: each.name(), about: each.summary() || each.description() })),
      ...choices.map((name) => ({ name, about: "" })),
    ],
    flags: [...own, ...global].flatMap(({ long, required, optional, description }) =>
      long ? [{ name: long, about: description, takesValue: required || optional }] : [],
    ),
  };
  const shared = path.length === 0 ? own.filter(({ long }) => long !== "--version" && long !== "--help") : global;
  return [place, ...groups.flatMap((each) => placesOf(each, [...path, each.name()], shared))];
}
