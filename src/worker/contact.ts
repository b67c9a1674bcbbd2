// Contact with the store: whether there is any, since when, and how to call it so that an outage costs nothing but
// time. Every loop of a worker goes through here, so that an outage is logged once a second and not once a call.
import { isRedriveError } from "../core/errors.ts";
import { textOf } from "../core/failure.ts";
import type { Log } from "../system/log.ts";
import { oncePerSecond } from "../system/log.ts";
import type { System } from "../system/system.ts";

/** A worker's view of the store's presence. */
export interface Contact {
  /** Makes one call; null if the store could not answer. What is no outage is thrown. */
  attempt<T>(what: string, call: () => Promise<T>): Promise<T | null>;
  /** Makes the call again and again until the store answers or the signal fires; null only then. */
  insist<T>(what: string, call: () => Promise<T>, signal: AbortSignal): Promise<T | null>;
  /**
   * True for an error that means the store is away, which is said at most once a second, whoever met it and however. Others
   * may still reach it: contact is not broken by this.
   */
  isAway(what: string, error: unknown): boolean;
  /** For how long contact has been unbroken; 0 while there is none. */
  unbrokenMs(): number;
  /** Says, at most once a second, that something failed which is no outage: a defect that must not end a loop. */
  complain(what: string, error: unknown): void;
  /** We ourselves were away for a while: what was known before counts no more. */
  interrupted(): void;
}

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 2_000;

/** Contact that begins now; a call that takes longer than `slowMs` counts as a break, because others waited too. */
export function openContact(system: System, log: Log, slowMs: number): Contact {
  let since: number | null = system.monotonic();
  const say = oncePerSecond(system.monotonic);

  const interrupted = (): void => {
    if (since !== null) since = system.monotonic();
  };
  const isAway = (what: string, error: unknown): boolean => {
    if (!isRedriveError(error) || (error.code !== "store_unavailable" && error.code !== "store_unusable")) return false;
    say("away", (heldBack) =>
      log.warn(
        { code: error.code, ...(heldBack > 0 && { heldBack }) },
        `the store did not answer (${what}): ${error.message}`,
      ),
    );
    return true;
  };
  const attempt = async <T>(what: string, call: () => Promise<T>): Promise<T | null> => {
    const asked = system.monotonic();
    try {
      const answer = await call();
      if (system.monotonic() - asked > slowMs) interrupted();
      if (since === null) {
        since = system.monotonic();
        say("back", () => log.info({}, "the store is back"));
      }
      return answer;
    } catch (error) {
      if (!isAway(what, error)) throw error;
      since = null;
      return null;
    }
  };
  return {
    attempt,
    async insist(what, call, signal) {
      for (let wait = FIRST_WAIT_MS; !signal.aborted; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
        const answer = await attempt(what, call);
        if (answer !== null) return answer;
        await system.sleep(wait * (0.5 + system.random()), signal);
      }
      return null;
    },
    isAway,
    unbrokenMs: () => (since === null ? 0 : system.monotonic() - since),
    complain(what, error) {
      const text = textOf(error);
      say(`${what} ${text}`, () => log.error({ error: text }, `${what} failed; it is tried again`));
    },
    interrupted,
  };
}
