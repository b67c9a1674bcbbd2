// Heartbeats from a thread of their own with a connection of its own, so that handlers that block the event loop, or a
// pool that is busy, cost no lease.
import type pg from "pg";
import { RedriveError } from "../../core/errors.ts";
import { startThread } from "../../system/threads.ts";
import { realSystem } from "../../system/real.ts";
import { openShared } from "../owner.ts";
import type { Pulse, PulseListener, PulseRequest } from "../store.ts";
import type { PulseWord } from "./pulse-thread.ts";

/** What the thread is started with. */
export interface PulseData {
  readonly request: PulseRequest;
  readonly shared: SharedArrayBuffer;
  readonly config: pg.ClientConfig;
  readonly schema: string;
  readonly place: string;
}

/** Starts a heartbeat in a thread; it is started again should the thread ever end by itself. */
export function startPulse(data: Omit<PulseData, "shared">, listener: PulseListener): Pulse {
  const { shared, show } = openShared();
  let stopped = false;
  let takeBack = (): void => undefined;
  const start = (): ReturnType<typeof startThread> => {
    const started = startThread(
      new URL("./pulse-thread.js", import.meta.url),
      { ...data, shared },
      {
        message(word) {
          const said = word as PulseWord;
          if (stopped) return;
          if ("answer" in said) listener.answer(said.answer);
          else listener.failure(new RedriveError("store_unavailable", said.failure));
        },
        end(cause) {
          if (stopped) return;
          listener.failure(
            new RedriveError("store_unavailable", `The thread of the heartbeat ended: ${cause.message}`),
          );
          takeBack = realSystem.after(data.request.everyMs, () => {
            thread = start();
          });
        },
      },
    );
    started.keepAlive(false);
    return started;
  };
  let thread = start();
  return {
    show,
    stop() {
      stopped = true;
      takeBack();
      void thread.stop();
    },
  };
}
