// What keeps one caller from using up the server: writes a second for each actor, open enqueues, open streams, and failed
// sign-ins by address. All of it is in the memory of the process and bounded.
import { HttpError } from "./http-error.ts";

/** Most names that are remembered; the oldest are forgotten first. */
const NAMES_MOST = 10_000;

function tooMany(message: string, seconds: number): HttpError {
  return new HttpError("too_many_requests", message, { headers: { "retry-after": String(seconds) } });
}

/** Lets each actor write so often a second, with a second's worth at once. */
export function writesPerSecond(most: number, monotonic: () => number): (actor: string) => void {
  const buckets = new Map<string, { tokens: number; at: number }>();
  return (actor) => {
    const now = monotonic();
    const bucket = buckets.get(actor) ?? { tokens: most, at: now };
    bucket.tokens = Math.min(most, bucket.tokens + ((now - bucket.at) * most) / 1_000);
    bucket.at = now;
    buckets.delete(actor);
    buckets.set(actor, bucket);
    if (buckets.size > NAMES_MOST) buckets.delete(buckets.keys().next().value as string);
    if (bucket.tokens < 1) throw tooMany(`${actor} has made ${most} changes within a second. Slow down.`, 1);
    bucket.tokens -= 1;
  };
}

/** Counts what is open at the same time. */
export interface Turnstile {
  /** Enters, or throws where it is full; answers how to leave. */
  enter(): () => void;
  readonly open: number;
}

/** A gate that lets so many in at once. */
export function gate(most: number, what: string): Turnstile {
  let open = 0;
  return {
    get open() {
      return open;
    },
    enter() {
      if (open >= most) throw tooMany(`${most} ${what} are open already. Try again in a moment.`, 1);
      open += 1;
      let isIn = true;
      return () => {
        if (isIn) open -= 1;
        isIn = false;
      };
    },
  };
}

/** Failed sign-ins by address. */
export interface Throttle {
  /** Throws while the address has to wait. */
  check(address: string | null): void;
  /** Counts a failure. */
  failed(address: string | null): void;
}

const WINDOW_MS = 60_000;

/** Ten failures a minute and address are free; each further one makes the address wait a second longer. */
export function throttle(monotonic: () => number, free = 10): Throttle {
  const failures = new Map<string, { count: number; since: number; until: number }>();
  const of = (address: string | null): string => address ?? "";
  return {
    check(address) {
      const found = failures.get(of(address));
      const waitMs = found ? found.until - monotonic() : 0;
      if (waitMs > 0) throw tooMany("Too many failed sign-ins from this address.", Math.ceil(waitMs / 1_000));
    },
    failed(address) {
      const now = monotonic();
      const found = failures.get(of(address));
      const isOld = found === undefined || (now - found.since > WINDOW_MS && now > found.until);
      const next = isOld ? { count: 0, since: now, until: 0 } : found;
      next.count += 1;
      if (next.count > free) next.until = now + Math.min(WINDOW_MS, (next.count - free) * 1_000);
      failures.delete(of(address));
      failures.set(of(address), next);
      if (failures.size > NAMES_MOST) failures.delete(failures.keys().next().value as string);
    },
  };
}
