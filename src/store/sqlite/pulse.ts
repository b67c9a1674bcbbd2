// Heartbeats from the store thread. The owner's event loop shows itself by counting up in shared memory; as long as the
// count moves, the thread beats, however busy that loop is in between.
import type { PulseListener, PulseRequest } from "../store.ts";
import type { System } from "../../system/system.ts";
import type { Reply, Request } from "./engine.ts";

/** How a pulse travels to the store thread. */
export interface PulseWire {
  readonly number: number;
  readonly request: PulseRequest;
  /** Two numbers: how often the owner showed itself, and how far its runs have started. */
  readonly shared: SharedArrayBuffer;
}

/** The owner's side of a pulse. */
export function openShared(): { readonly shared: SharedArrayBuffer; show(startedThrough: number): void } {
  const shared = new SharedArrayBuffer(16);
  const view = new Float64Array(shared);
  return {
    shared,
    show(startedThrough) {
      view[1] = startedThrough;
      view[0] = (view[0] as number) + 1;
    },
  };
}

/** A pulse in the store thread. */
export interface Beating {
  /** Beats if a beat is overdue: a thread that always has work never comes to its timers. */
  catchUp(): void;
  stop(): void;
}

/** The thread's side: beats until it is stopped. */
export function startPulse(
  { request, shared }: PulseWire,
  system: System,
  carry: (request: Request) => Reply,
  tell: (reply: Reply) => void,
): Beating {
  const view = new Float64Array(shared);
  let shown = -1;
  let shownAt = system.monotonic();
  let dueAt = shownAt + request.everyMs;
  const beat = (): void => {
    dueAt = system.monotonic() + request.everyMs;
    takeBack = system.after(request.everyMs, beat);
    const count = view[0] as number;
    if (count !== shown) {
      shown = count;
      shownAt = system.monotonic();
    }
    if (system.monotonic() - shownAt > request.stallMs) return;
    const { worker, leaseMs } = request;
    tell(carry({ verb: "beat", args: [{ worker, leaseMs, startedThrough: view[1] as number }] }));
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

/** Passes an answer of the thread on to whoever listens. */
export function hear(listener: PulseListener | undefined, reply: Reply): void {
  if ("error" in reply) listener?.failure(reply.error);
  else listener?.answer(reply.value as Parameters<PulseListener["answer"]>[0]);
}
