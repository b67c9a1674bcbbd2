// Contact with the store: whether there is any, what held it up, and how to call it so that an outage costs nothing but
// time. Every loop of a worker goes through here, so that an outage is logged once a second and not once a call.
import { isRedriveError } from "../core/errors.ts";
import { textOf } from "../core/failure.ts";
import { hasLasted, type HoldUp, steppedAhead, type TimeReading, withHoldUp } from "../core/lapse.ts";
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
  /** True while the store answers, as far as we know. */
  isUp(): boolean;
  /** True if workers of this lease that live had the time to show themselves: contact has lasted for all of it. */
  hasLasted(leaseMs: number): boolean;
  /** Says, at most once a second, that something failed which is no outage: a defect that must not end a loop. */
  complain(what: string, error: unknown): void;
  /** Everything stood still for so long, or we ourselves were away: nobody could be heard. Default: we begin now. */
  heldUp(ms?: number): void;
  /** An answer told the store's time. A step of its clock ends leases early, so it counts as a hold-up. */
  told(reading: TimeReading): void;
}

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 2_000;

/** Contact that begins now. The time a call takes counts as a hold-up, because others waited too. */
export function openContact(system: System, log: Log): Contact {
  let isUp = true;
  const { heldUp, told, hasLasted: unbroken } = watchHoldUps(system);
  const say = oncePerSecond(system.monotonic);

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
      heldUp(system.monotonic() - asked);
      if (!isUp) {
        isUp = true;
        heldUp();
        say("back", () => log.info({}, "the store is back"));
      }
      return answer;
    } catch (error) {
      if (!isAway(what, error)) throw error;
      isUp = false;
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
    isUp: () => isUp,
    hasLasted: (leaseMs) => isUp && unbroken(leaseMs),
    complain(what, error) {
      const text = textOf(error);
      say(`${what} ${text}`, () => log.error({ error: text }, `${what} failed; it is tried again`));
    },
    heldUp,
    told,
  };
}

/** Remembers what held up contact that begins now. */
function watchHoldUps({ monotonic }: System): Pick<Contact, "heldUp" | "told" | "hasLasted"> {
  let holdUps: readonly HoldUp[] = [];
  let lastTold: TimeReading | null = null;
  const heldUp = (ms = Number.POSITIVE_INFINITY): void => {
    holdUps = withHoldUp(holdUps, { until: monotonic(), ms });
  };
  heldUp();
  return {
    heldUp,
    told(reading) {
      heldUp(reading.answered - reading.asked);
      // The first one has nothing to be compared with: a step may have come just before it.
      heldUp(lastTold ? steppedAhead(lastTold, reading) : Number.POSITIVE_INFINITY);
      lastTold = reading;
    },
    hasLasted: (leaseMs) => hasLasted(holdUps, leaseMs, monotonic()),
  };
}
