// Supervises a worker to its end: by itself, by a signal, by a second signal that cannot wait, or because the worker
// asks to be replaced.
//
//   working ── done ─────────────────────────────► null
//           ── signal, or spent ──► stopping ────► 130, 143 or 75
//                                   ── signal ───► the same, at once and without the store if need be
import type { Duration } from "../core/duration.ts";
import type { Redrive } from "../redrive-api.ts";
import type { RedriveWorker } from "../worker/redrive-worker-api.ts";
import { realSystem } from "../system/real.ts";
import { EXIT } from "./exit.ts";
import type { Io, StopSignal } from "./io.ts";
import type { Session } from "./session.ts";

/** How long the store may take after a second signal. */
const LAST_MS = 1_000;

/** The same signal within this time counts once: `timeout` and npm send it to the process and to its group. */
const SAME_SIGNAL_MS = 200;

/** Lets the worker work; null when it ended by itself, else the exit code. */
export async function supervise(
  session: Session,
  redrive: Redrive,
  worker: Pick<RedriveWorker, "stop" | "counts">,
  options: { readonly work: () => Promise<unknown>; readonly within: Duration },
): Promise<number | null> {
  const signals = listen(session.io);
  const spent = new Promise<"spent">((resolve) => redrive.on("worker.spent", () => resolve("spent")));
  try {
    const work = options.work();
    const end = await Promise.race([work.then(() => null), signals.next(), spent]);
    if (end === null) return null;
    // The stop also ends the remaining work and reports its errors.
    work.catch(() => undefined);
    announce(session, end, worker, options.within);
    const stopped = worker.stop({ within: options.within }).then(() => session.close());
    const hurried = signals.next().then(async () => {
      session.log.warn({}, "second signal: stopping at once");
      worker.stop({ within: 0 }).catch(() => undefined);
      await realSystem.sleep(LAST_MS);
    });
    await Promise.race([stopped, hurried]);
    session.abandon();
    return end === "spent" ? EXIT.replace : EXIT[end];
  } finally {
    signals.stop();
  }
}

function announce(
  { log }: Session,
  end: StopSignal | "spent",
  { counts }: Pick<RedriveWorker, "counts">,
  within: Duration,
): void {
  if (end === "spent") {
    const message =
      "half of the slots are lost to handlers that ignore their abort signal: stopping; replace this process";
    log.error({ leaked: counts.leaked }, message);
  } else
    log.info(
      { signal: end, within },
      "stopping: takes no new jobs, lets running ones finish; interrupt again to stop at once",
    );
}

/** Listens for the signals that ask to stop, one after the other. */
export function listen(io: Io): { next(): Promise<StopSignal>; stop(): void } {
  const heard: StopSignal[] = [];
  const lastAt = new Map<StopSignal, number>();
  let waiting: ((signal: StopSignal) => void) | null = null;
  const stop = io.onSignal((signal) => {
    const now = realSystem.monotonic();
    if (now - (lastAt.get(signal) ?? Number.NEGATIVE_INFINITY) < SAME_SIGNAL_MS) return;
    lastAt.set(signal, now);
    if (waiting) waiting(signal);
    else heard.push(signal);
    waiting = null;
  });
  return {
    stop,
    next() {
      const signal = heard.shift();
      return signal ? Promise.resolve(signal) : new Promise((resolve) => (waiting = resolve));
    },
  };
}
