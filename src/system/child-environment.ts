// What children see of our environment: what every program needs, and what was named. Nothing else, so that secrets of
// this process stay here.

const ALWAYS = ["PATH", "LANG", "TZ", "HOME"];

/** The environment for a child: these names, as far as they are set here, and what is added. */
export function childEnvironment(
  names: readonly string[],
  added: Readonly<Record<string, string>>,
): Record<string, string> {
  const seen = [...ALWAYS, ...names].map((name) => [name, process.env[name]] as const);
  return { ...Object.fromEntries(seen.filter((entry): entry is [string, string] => entry[1] !== undefined)), ...added };
}
