// The environment of child processes: the variables that every program needs, and those that were named. Nothing else,
// so that secrets of this process stay here.

const ALWAYS = ["PATH", "LANG", "TZ", "HOME"];
/** Stands for all names. */
const ALL = "*";
/** Variables that we set for a child. Ours may come from a process above us, for other items. */
const OWN = ["JOB_INPUT", "JOB_INPUT_FILE", "REDRIVE_OUTCOMES_FD"];

/** The environment for a child: these names, where they are set here (`*` for all), and the added values. */
export function childEnvironment(
  names: readonly string[],
  added: Readonly<Record<string, string>>,
): Record<string, string> {
  const all = Object.keys(process.env).filter((name) => !OWN.includes(name));
  const seen = [...ALWAYS, ...(names.includes(ALL) ? all : names)].map((name) => [name, process.env[name]] as const);
  return { ...Object.fromEntries(seen.filter((entry): entry is [string, string] => entry[1] !== undefined)), ...added };
}
