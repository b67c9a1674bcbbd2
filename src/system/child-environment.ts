// What children see of our environment: what every program needs, and what was named. Nothing else, so that secrets of
// this process stay here.

const ALWAYS = ["PATH", "LANG", "TZ", "HOME"];
/** In place of names: all of them. */
const ALL = "*";
/** What a child hears from us. Ours may have been set by one above us, for other items. */
const OWN = ["JOB_INPUT", "JOB_INPUT_FILE", "REDRIVE_OUTCOMES_FD"];

/** The environment for a child: these names, as far as they are set here (`*` for all), and what is added. */
export function childEnvironment(
  names: readonly string[],
  added: Readonly<Record<string, string>>,
): Record<string, string> {
  const all = Object.keys(process.env).filter((name) => !OWN.includes(name));
  const seen = [...ALWAYS, ...(names.includes(ALL) ? all : names)].map((name) => [name, process.env[name]] as const);
  return { ...Object.fromEntries(seen.filter((entry): entry is [string, string] => entry[1] !== undefined)), ...added };
}
