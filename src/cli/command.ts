// What all commands share in the way they are put together: a session around the action, flags that repeat, numbers as
// numbers, examples.
import type { Command } from "commander";
import type { LogLevel } from "../system/log.ts";
import type { Io } from "./io.ts";
import type { GlobalOptions, Session } from "./session.ts";

/** Flags of one call, as commander names them. */
export type Flags = Readonly<Record<string, string | boolean | string[] | undefined>>;

/** What a command does; the answer is the exit code, 0 where there is none. */
export type Action = (session: Session, args: readonly string[], flags: Flags) => Promise<number | undefined | void>;

/** What commands are registered with. */
export interface Cli {
  readonly program: Command;
  /** The command itself, to which the module adds what it takes and does. */
  readonly command: Command;
  readonly io: Io;
  /** Makes a command do something; `level` is how much it logs where nobody says otherwise. */
  act(command: Command, action: Action, options?: { readonly level?: (flags: Flags) => LogLevel }): void;
  /** The same for a command that needs neither store nor config. */
  actBare(command: Command, action: (args: readonly string[], flags: Flags) => Promise<number>): void;
}

/** Ties actions to the streams of one call; `done` hears the exit code. */
export function openCli({
  done,
  ...parts
}: Pick<Cli, "program" | "command" | "io"> & { done(code: number): void }): Cli {
  const { program, io } = parts;
  return {
    ...parts,
    act(command, action, { level } = {}) {
      command.action(async () => {
        // Only a call that acts needs it; help does not.
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

/** Examples at the end of a help text, with the program as the user calls it. */
export function examples(command: Command, cli: Cli, lines: readonly string[]): Command {
  const shown = lines.map((line) => `  ${cli.io.program} ${line}`);
  return command.addHelpText("after", `\n${lines.length === 1 ? "Example" : "Examples"}:\n${shown.join("\n")}`);
}

/** For options that may be given several times. */
export function collected(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}

/** A flag as a number where it looks like one; anything else stays, for the library to refuse with its range. */
export function numeric(value: unknown): number | undefined {
  if (typeof value !== "string") return undefined;
  return (/^-?\d{1,15}(\.\d+)?$/.test(value) ? Number(value) : value) as number;
}

/** A flag as text. */
export function textual(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The object without fields that are undefined. */
export function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
