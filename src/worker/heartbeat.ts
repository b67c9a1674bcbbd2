// Keeps a worker's lease. Heartbeats come from the store's own thread where it has one, else from this event loop.
// Either way the worker learns whether it is still registered, which runs to cancel, and when it has been out of
// contact for so long that other workers may have its jobs.
import type { BeatAnswer, PulseListener, Pulse, Store } from "../store/store.ts";
import type { System } from "../system/system.ts";

/** What a heartbeat needs, and its callbacks. */
export interface HeartbeatOptions {
  readonly store: Store;
  readonly system: System;
  readonly worker: string;
  readonly leaseMs: number;
  readonly everyMs: number;
  readonly stallMs: number;
  readonly startedThrough: () => number;
  readonly onAnswer: (answer: BeatAnswer) => void;
  readonly onFailure: (error: unknown) => void;
  /** Called when contact was lost for so long that the lease is about to end. */
  readonly onSilence: () => void;
}

/** A started heartbeat. */
export interface Heartbeat {
  stop(): void;
}

/** Part of the lease that is reserved for stopping in time. */
const MARGIN = 0.2;
const READ_ON_MS = 10;

/** Starts the heartbeat; the first one comes after one interval, because registering counted as one. */
export function startHeartbeat(options: HeartbeatOptions): Heartbeat {
  const { store, system, worker, leaseMs, everyMs, stallMs, startedThrough, onAnswer, onFailure, onSilence } = options;
  // After a blocked event loop the timer fires before the waiting answers are read: check once more.
  const silent = (): void => {
    takeBack = system.after(READ_ON_MS, onSilence);
  };
  let takeBack = system.after(leaseMs * (1 - MARGIN), silent);
  const listener: PulseListener = {
    answer(answer) {
      takeBack();
      if (answer.alive) takeBack = system.after(leaseMs * (1 - MARGIN), silent);
      onAnswer(answer);
    },
    failure: onFailure,
  };
  const pulse = store.pulse
    ? showing(store.pulse({ worker, leaseMs, everyMs, stallMs }, listener), system, everyMs, startedThrough)
    : beating(options, listener);
  return {
    stop() {
      takeBack();
      pulse.stop();
    },
  };
}

/** Shows a pulse in another thread that the event loop is alive. */
function showing(pulse: Pulse, system: System, everyMs: number, startedThrough: () => number): Heartbeat {
  const ending = new AbortController();
  const show = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      pulse.show(startedThrough());
      await system.sleep(Math.min(everyMs, 1_000), ending.signal);
    }
  };
  void show();
  return {
    stop() {
      ending.abort();
      pulse.stop();
    },
  };
}

/** Sends heartbeats from this event loop. */
function beating(
  { store, system, worker, leaseMs, everyMs, startedThrough }: HeartbeatOptions,
  listener: PulseListener,
): Heartbeat {
  const ending = new AbortController();
  const beat = async (): Promise<void> => {
    let waitMs = everyMs;
    while (!ending.signal.aborted) {
      await system.sleep(waitMs, ending.signal);
      if (ending.signal.aborted) return;
      try {
        const answer = await store.beat({ worker, leaseMs, startedThrough: startedThrough() });
        if (ending.signal.aborted) return;
        waitMs = everyMs;
        listener.answer(answer);
        if (!answer.alive) return;
      } catch (error) {
        // Sooner than usual, because the lease is running out.
        waitMs = Math.min(everyMs, leaseMs / 10) * (0.5 + system.random());
        listener.failure(error as Error);
      }
    }
  };
  void beat();
  return { stop: () => ending.abort() };
}
