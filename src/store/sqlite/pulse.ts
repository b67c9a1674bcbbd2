// Sends heartbeats from the store thread, however busy the owner's event loop is.
import { watchLiveness } from "../liveness-counter.ts";
import type { PulseListener, PulseRequest } from "../store.ts";
import type { System } from "../../system/system.ts";
import type { Reply, Request } from "./engine.ts";

/** A pulse as sent to the store thread. */
export interface PulseWire {
  readonly number: number;
  readonly request: PulseRequest;
  readonly shared: SharedArrayBuffer;
}

/** A pulse in the store thread. */
export interface Beating {
  /** Sends a heartbeat if one is overdue: a thread that always has work never reaches its timers. */
  catchUp(): void;
  stop(): void;
}

/** The thread's side: sends heartbeats until it is stopped. */
export function startPulse(
  { request, shared }: PulseWire,
  system: System,
  carry: (request: Request) => Reply,
  tell: (reply: Reply) => void,
): Beating {
  const owner = watchLiveness(shared, request.stallMs, system.monotonic);
  let dueAt = system.monotonic() + request.everyMs;
  const beat = (): void => {
    dueAt = system.monotonic() + request.everyMs;
    takeBack = system.after(request.everyMs, beat);
    if (owner.isStalled()) return;
    const { worker, leaseMs } = request;
    tell(carry({ verb: "beat", args: [{ worker, leaseMs, startedThrough: owner.startedThrough() }] }));
  };
  let takeBack = system.after(request.everyMs, beat);
  return {
    catchUp() {
      if (system.monotonic() < dueAt) return;
      takeBack();
      beat();
    },
    stop: () => takeBack(),
  };
}

/** Passes an answer of the thread on to the listener. */
export function hear(listener: PulseListener | undefined, reply: Reply): void {
  if ("error" in reply) listener?.failure(reply.error);
  else listener?.answer(reply.value as Parameters<PulseListener["answer"]>[0]);
}
