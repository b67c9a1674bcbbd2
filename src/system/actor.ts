// Who runs this process, for the event log.
import { hostname, userInfo } from "node:os";

/** Room for both names in what the event log takes. */
const NAME_MOST = 40;

/** `REDRIVE_ACTOR`, else the user and the host, such as `ada@web-1`. */
export function processActor(): string {
  const { REDRIVE_ACTOR: named } = process.env;
  // Blanks alone are no name: the caller refuses them.
  if (named !== undefined && named !== "") return named.trim() || named;
  return `${short(userName())}@${short(hostname())}`;
}

function short(name: string): string {
  return name.slice(0, NAME_MOST).toWellFormed();
}

/** A container may run under a number that no user has. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "unknown");
  }
}
