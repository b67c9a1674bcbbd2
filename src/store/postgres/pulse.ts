// Heartbeats from a thread of their own with a connection of its own, so that handlers that block the event loop, or a
// pool that is busy, cost no lease.
import type pg from "pg";
import { RedriveError } from "../../core/errors.ts";
import { textOf } from "../../core/failure.ts";
import { startThread } from "../../system/threads.ts";
import { realSystem } from "../../system/real.ts";
import { openShared } from "../liveness-counter.ts";
import type { Pulse, PulseListener, PulseRequest } from "../store.ts";
import { loadPg } from "./driver.ts";
import type { PulseWord } from "./pulse-thread.ts";

/** What the thread is started with. */
export interface PulseData {
  readonly request: PulseRequest;
  readonly shared: SharedArrayBuffer;
  readonly config: pg.ClientConfig;
  readonly schema: string;
  /** The version of the schema that this program knows. */
  readonly known: number;
  readonly place: string;
}

/** Asks for a password that is good now. */
export type AskPassword = () => Promise<unknown>;

/** How a function of the user's is asked for the password; null where no function gives it. */
export function passwordOf(config: pg.ClientConfig | null): AskPassword | null {
  const password = config?.password;
  if (config === null || typeof password !== "function") return null;
  // As `pg` asks: with what it is about to connect to.
  const { connectionParameters } = new (loadPg().Client)(config) as unknown as {
    readonly connectionParameters: unknown;
  };
  return async () => (password as (about: unknown) => unknown)(connectionParameters);
}

/** Starts a heartbeat in a thread; it is started again should the thread ever end by itself. */
export function startPulse(
  data: Omit<PulseData, "shared">,
  askPassword: AskPassword | null,
  listener: PulseListener,
): Pulse {
  const { shared, show } = openShared();
  let stopped = false;
  let takeBack = (): void => undefined;
  const fail = (message: string): void => listener.failure(new RedriveError("store_unavailable", message));
  /** Before the first connection, and again after a failure: such passwords are good for minutes. */
  const sendPassword = async (): Promise<void> => {
    try {
      const password = await askPassword?.();
      if (typeof password === "string" && !stopped) thread.post(password);
    } catch (error) {
      if (!stopped) fail(`The password of the pool, which a function gives, could not be had: ${textOf(error)}`);
    }
  };
  const start = (): ReturnType<typeof startThread> => {
    const started = startThread(
      new URL("./pulse-thread.js", import.meta.url),
      { ...data, shared },
      {
        message(word) {
          const said = word as PulseWord;
          if (stopped) return;
          if ("answer" in said) return listener.answer(said.answer);
          fail(said.failure);
          void sendPassword();
        },
        end(cause) {
          if (stopped) return;
          fail(`The thread of the heartbeat ended: ${cause.message}`);
          takeBack = realSystem.after(data.request.everyMs, () => {
            thread = start();
            void sendPassword();
          });
        },
      },
    );
    started.keepAlive(false);
    return started;
  };
  let thread = start();
  void sendPassword();
  return {
    show,
    stop() {
      stopped = true;
      takeBack();
      void thread.stop();
    },
  };
}
