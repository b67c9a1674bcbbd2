// The message for filters that match no dead letter or no job: which filters, and which values may have been meant.
import { didYouMean } from "../core/options.ts";
import { LOOK_AT } from "../enqueue/paging.ts";
import type { Redrive } from "../redrive-api.ts";
import type { Flags } from "./command.ts";

const OF_JOBS = ["state", "type", "queue", "key", "class", "reason", "service", "tenant"];
const OF_LETTERS = ["from", "until", "olderThan", "text", "cause", "fingerprint"];

/** `No dead letter matches --type thumbnial (did you mean "thumbnail"?)`. */
export async function noMatchHint({ deadLetters }: Redrive, flags: Flags): Promise<string> {
  const given = filtersIn(flags);
  if (given === "") return "There are no dead letters";
  const { byType, causes } = await deadLetters.stats({ lookAt: LOOK_AT });
  const fingerprints = causes.map(({ fingerprint }) => fingerprint);
  const hints = [meant(flags.type, Object.keys(byType)), meant(flags.cause ?? flags.fingerprint, fingerprints)].filter(
    Boolean,
  );
  const said = `No dead letter matches ${given}`;
  return hints.length === 0 ? said : `${said} (${hints.join(" ")})`;
}

/** `No job matches --type thumbnial`. */
export function noJobHint(flags: Flags): string {
  const given = filtersIn(flags);
  return given === "" ? "There are no jobs" : `No job matches ${given}`;
}

function filtersIn(flags: Flags): string {
  const given = [...OF_JOBS, ...OF_LETTERS].filter((name) => flags[name] !== undefined);
  const flagOf = (name: string): string => (name === "olderThan" ? "--older-than" : `--${name}`);
  return given.map((name) => `${flagOf(name)} ${String(flags[name])}`).join(" ");
}

/** Empty for a known value, and for one that is like no known value. */
function meant(value: Flags[string], known: readonly string[]): string {
  if (typeof value !== "string" || known.includes(value)) return "";
  const longer = known.filter((one) => value.length >= 4 && one.startsWith(value));
  return longer.length === 1 ? `did you mean "${longer[0]}"?` : didYouMean(value, known);
}
