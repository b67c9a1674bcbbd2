// An example as a command: flags in, a story, an exit code out. 0 only if its books balance, 1 if they do not or it could
// not go on, 2 for flags it does not know.
import { type ParseArgsConfig, parseArgs } from "node:util";

type FlagsConfig = NonNullable<ParseArgsConfig["options"]>;

/** Runs the example of this process. */
export async function runExample<Config extends FlagsConfig, Flags>(example: {
  readonly usage: string;
  readonly flags: Config;
  /** What the flags mean; throws for one that is wrong. */
  readonly read: (values: ReturnType<typeof parseArgs<{ options: Config }>>["values"]) => Flags;
  /** True if the books balance. */
  readonly story: (flags: Flags) => Promise<boolean>;
  /** Called at the end, however it came. */
  readonly end?: () => void;
}): Promise<void> {
  process.once("SIGINT", () => process.exit(130));
  process.once("SIGTERM", () => process.exit(143));
  let flags: Flags;
  try {
    flags = example.read(parseArgs({ options: example.flags }).values);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${example.usage}`);
    process.exit(2);
  }
  try {
    process.exitCode = (await example.story(flags)) ? 0 : 1;
  } catch (error) {
    process.stderr.write(`\n${(error as Error).message}\n`);
    process.exitCode = 1;
  } finally {
    example.end?.();
  }
}

/** A flag as a whole number within bounds. */
export function wholeFlag(name: string, text: string, least: number, most: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new Error(`--${name}: expected a whole number from ${least} to ${most}; got ${JSON.stringify(text)}`);
}
