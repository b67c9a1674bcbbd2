// `redrive dlq causes mute`, `unmute`, `fix`, `reopen`, `note` and `own`: what people say of a cause.
import type { Command } from "commander";
import { causeForm, type Causes, type CauseView } from "../operate/causes.ts";
import { type Cli, defined, examples, type Flags, numeric, textual, whyFlag, whyOf } from "./command.ts";
import { safeLine } from "../core/safe-text.ts";

type Change = (causes: Causes, args: readonly string[], flags: Flags) => Promise<CauseView>;

/** Registers the commands below `dlq causes`. */
export function registerCauseChanges(cli: Cli, causes: Command): void {
  const add = (name: string, about: string, example: string): Command => {
    const command = causes.command(name).description(about).argument("<cause>", "its fingerprint");
    examples(command, cli, [`dlq causes ${name} 7f3a9c1e02b4d611${example}`]);
    return whyFlag(command);
  };
  const act = (command: Command, change: Change): void =>
    cli.act(command, async (session, args, flags) => {
      const view = await change((await session.openExisting()).causes, args, flags);
      session.answer(causeForm(view), () => safeLine(textOf(view)) + "\n");
    });

  const mute = add("mute", "mute a cause for a time, or until more of its jobs died", " --for 2h")
    .option("--for <duration>", "for this long, e.g. 2h")
    .option("--more <n>", "until so many more have died");
  act(mute, (all, [cause = ""], flags) => {
    const end = defined({ for: textual(flags.for), more: numeric(flags.more) });
    return all.mute(cause, { ...end, ...whyOf(flags) });
  });
  act(add("unmute", "end the mute of a cause", ""), (all, [cause = ""], flags) => all.unmute(cause, whyOf(flags)));
  const fix = add("fix", "mark a cause as fixed: in a release, or from now on", " --in 1.4.2").option(
    "--in <release>",
    "the release that has the fix; workers need not run it yet",
  );
  act(fix, (all, [cause = ""], flags) => all.fix(cause, { ...defined({ in: textual(flags.in) }), ...whyOf(flags) }));
  act(add("reopen", "take back that a cause is fixed", ""), (all, [cause = ""], flags) =>
    all.reopen(cause, whyOf(flags)),
  );
  const note = add("note", "keep a note about a cause; an empty text removes it", " 'see INC-12'");
  act(note.argument("<text>", "the note, up to 1000 characters"), (all, [cause = "", text = ""], flags) =>
    all.note(cause, text === "" ? null : text, whyOf(flags)),
  );
  const own = add("own", "say who takes care of a cause; an empty name removes it", " payments");
  act(own.argument("<name>", "person or team"), (all, [cause = "", name = ""], flags) =>
    all.own(cause, name === "" ? null : name, whyOf(flags)),
  );
}

function textOf({ fingerprint, state, says, note, owner }: CauseView): string {
  const rest = [owner === null ? "" : ` Owner: ${owner}.`, note === null ? "" : ` Note: ${note}`].join("");
  return `Cause ${fingerprint} is ${state}: ${says}.${rest}`;
}
