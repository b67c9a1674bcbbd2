// Sends heartbeats from a separate thread with its own connection, so that a handler that blocks the event loop, or a
// busy pool, does not cost the lease.
import type pg from "pg";
import { RedriveError } from "../../core/errors.ts";
import { textOf } from "../../core/failure.ts";
import { startThread } from "../../system/threads.ts";
import { realSystem } from "../../system/real.ts";
import { openShared } from "../liveness-counter.ts";
import type { Pulse, PulseListener, PulseRequest } from "../store.ts";
import { loadPg } from "./load-pg.ts";
import type { PulseWord } from "./pulse-thread.ts";

/** The start data of the thread. */
export interface PulseData {
  readonly request: PulseRequest;
  readonly shared: SharedArrayBuffer;
  readonly config: pg.ClientConfig;
  readonly schema: string;
  /** The version of the schema that this program knows. */
  readonly known: number;
  readonly place: string;
}

/** Asks for a password that is valid now. */
export type AskPassword = () => Promise<unknown>;

/** Asks the user's password function; null where there is none. */
export function passwordOf(config: pg.ClientConfig | null): AskPassword | null {
  const password = config?.password;
  if (config === null || typeof password !== "function") return null;
  // Called as `pg` calls it: with the parameters of the connection.
  const { connectionParameters } = new (loadPg().Client)(config) as unknown as {
    readonly connectionParameters: unknown;
  };
  return async () => (password as (about: unknown) => unknown)(connectionParameters);
}

/** Starts a heartbeat in a thread, and again if the thread ends unexpectedly. */
export function startPulse(
  data: Omit<PulseData, "shared">,
  askPassword: AskPassword | null,
  listener: PulseListener,
): Pulse {
  const { shared, show } = openShared();
  let stopped = false;
  let takeBack = (): void => undefined;
  const fail = (message: string): void => listener.failure(new RedriveError("store_unavailable", message));
  /** Before the first connection, and again after a failure: such passwords are valid for minutes. */
  const sendPassword = async (): Promise<void> => {
    try {
      const password = await askPassword?.();
      if (typeof password === "string" && !stopped) thread.post(password);
    } catch (error) {
      if (!stopped) fail(`The password function of the pool failed: ${textOf(error)}`);
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
          fail(`The heartbeat thread ended: ${cause.message}`);
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
