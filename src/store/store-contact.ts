// Contact with the store: whether there is any, what interrupted it, and how to call it so that an outage costs only
// time. Every loop of a worker goes through here, so that an outage is logged once a second and not once a call.
import { isRedriveError } from "../core/errors.ts";
import { textOf } from "../core/failure.ts";
import { hasLasted, type HoldUp, steppedAhead, type TimeReading, withHoldUp } from "../core/lapse.ts";
import type { Log } from "../system/log.ts";
import { oncePer } from "../system/log.ts";
import type { System } from "../system/system.ts";

/** A worker's view of the store's availability. */
export interface Contact {
  /** Makes one call; null if the store could not answer. Throws an error that is not an outage. */
  attempt<T>(what: string, call: () => Promise<T>): Promise<T | null>;
  /** Repeats the call until the store answers or the signal fires; null only then. */
  insist<T>(what: string, call: () => Promise<T>, signal: AbortSignal): Promise<T | null>;
  /**
   * True for an error that means the store is away; logged at most once a second for all callers. Others may still
   * reach the store: this does not break contact.
   */
  isAway(what: string, error: unknown): boolean;
  /** True while the store answers, as far as we know. */
  isUp(): boolean;
  /** True if living workers with this lease had time for a heartbeat: contact has lasted for all of it. */
  hasLasted(leaseMs: number): boolean;
  /** Logs, at most once a second, a failure that is not an outage: a defect that must not end a loop. */
  complain(what: string, error: unknown): void;
  /**
   * Records that everything stood still for so long, or that this process was away: no worker could be heard. Default:
   * from now on.
   */
  heldUp(ms?: number): void;
  /** Records an answer with the store's time. A step of its clock ends leases early, so it is an interruption. */
  told(reading: TimeReading): void;
}

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 2_000;

/** Contact that begins now. The time a call takes counts as an interruption, because others waited too. */
export function openContact(system: System, log: Log): Contact {
  let isUp = true;
  const { heldUp, told, hasLasted: unbroken } = watchHoldUps(system);
  const say = oncePer(1_000, system.monotonic);
  const sayRarely = oncePer(60_000, system.monotonic);

  const isAway = (what: string, error: unknown): boolean => {
    if (!isRedriveError(error) || (error.code !== "store_unavailable" && error.code !== "store_unusable")) return false;
    // A store that refuses this program goes on refusing it until an operator acts.
    const tell = error.code === "store_unusable" ? sayRarely : say;
    tell("away", (heldBack) =>
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
      say(`${what} ${text}`, () => log.error({ error: text }, `${what} failed; it will be retried`));
    },
    heldUp,
    told,
  };
}

/** Remembers the interruptions of a contact that begins now. */
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
      // The first one has nothing to be compared with: a step may have happened just before it.
      heldUp(lastTold ? steppedAhead(lastTold, reading) : Number.POSITIVE_INFINITY);
      lastTold = reading;
    },
    hasLasted: (leaseMs) => hasLasted(holdUps, leaseMs, monotonic()),
  };
}
