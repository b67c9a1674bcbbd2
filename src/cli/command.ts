// How all commands are built: a session around the action, repeatable flags, numbers as numbers, examples, and the flags
// that several commands share.
import type { Command } from "commander";
import { checkWhy } from "../core/event-log.ts";
import type { JobLimitOptions } from "../core/policy.ts";
import type { LogLevel } from "../system/log.ts";
import type { Io } from "./io.ts";
import type { GlobalOptions, Session } from "./session.ts";

/** Flags of one call, as commander names them. */
export type Flags = Readonly<Record<string, string | boolean | string[] | undefined>>;

/** The action of a command; it answers the exit code, 0 where it answers nothing. */
export type Action = (session: Session, args: readonly string[], flags: Flags) => Promise<number | undefined | void>;

/** What commands are registered with. */
export interface Cli {
  readonly program: Command;
  /** The command itself, to which the module adds its flags and its action. */
  readonly command: Command;
  readonly io: Io;
  /** Gives a command its action; `level` is its log level where neither flag nor variable sets one. */
  act(command: Command, action: Action, options?: { readonly level?: (flags: Flags) => LogLevel }): void;
  /** The same for a command that needs neither store nor config. */
  actBare(command: Command, action: (args: readonly string[], flags: Flags) => Promise<number>): void;
}

/** Binds actions to the streams of one call; `done` receives the exit code. */
export function openCli({
  done,
  ...parts
}: Pick<Cli, "program" | "command" | "io"> & { done(code: number): void }): Cli {
  const { program, io } = parts;
  return {
    ...parts,
    act(command, action, { level } = {}) {
      command.action(async () => {
        // Only a call that acts needs a session; help does not.
        const { openSession } = await import("./session.ts");
        const session = await openSession(io, program.opts<GlobalOptions>(), level?.(command.opts()));
        try {
          done((await action(session, operands(command), command.opts())) ?? 0);
        } catch (error) {
          throw await (await session.address.inspect()).explained(error);
        } finally {
          await session.close();
        }
      });
    },
    actBare(command, action) {
      command.action(async () => done(await action(operands(command), command.opts())));
    },
  };
}

function operands(command: Command): string[] {
  return command.processedArgs.flat().filter((arg): arg is string => typeof arg === "string");
}

/** Examples at the end of a help text, with the program name as the user typed it. */
export function examples(command: Command, cli: Cli, lines: readonly string[]): Command {
  const shown = lines.map((line) => `  ${cli.io.program} ${line}`);
  return command.addHelpText("after", `\n${lines.length === 1 ? "Example" : "Examples"}:\n${shown.join("\n")}`);
}

/** Collects the values of a repeatable option. */
export function collected(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}

/** A flag as a number where it looks like one; anything else stays, so that the library refuses it with its range. */
export function numeric(value: unknown): number | undefined {
  if (typeof value !== "string") return undefined;
  return (/^-?\d{1,15}(\.\d+)?$/.test(value) ? Number(value) : value) as number;
}

/** A flag as text. */
export function textual(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Adds the limits that a new job may set. */
export function limitFlags(command: Command): Command {
  return command
    .option("--max-attempts <n>", "attempts in total, including the first")
    .option("--deadline <duration>", "time limit over all attempts");
}

/** The limits that the flags set. */
export function limitOptions(flags: Flags): JobLimitOptions {
  return { maxAttempts: numeric(flags.maxAttempts), deadline: textual(flags.deadline) };
}

/** The object without its undefined fields. */
export function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

/** Adds the flag of every command that changes something. */
export function whyFlag(command: Command): Command {
  return command.option("--why <text>", "why you do it, for the event log");
}

/** The reason that the flags give; throws for a bad one, so that a command refuses it before it says what it does. */
export function whyOf(flags: Flags): { why?: string } {
  const why = textual(flags.why);
  if (why !== undefined) checkWhy(why);
  return defined({ why });
}
