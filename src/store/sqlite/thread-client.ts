// The client of the store thread in the caller's thread: numbers requests, sends those of one turn together, starts the
// thread on first use and again if it died.
import { RedriveError } from "../../core/errors.ts";
import { startThread, type Thread } from "../../system/threads.ts";
import type { PulseListener } from "../store.ts";
import type { Reply, Request } from "./engine.ts";
import { unpackError } from "./facade.ts";
import { hear, type PulseWire } from "./pulse.ts";
import type { Answer, Message, Numbered, ThreadData } from "./thread.ts";

/** A caller that waits for an answer. The map may keep this object for long, so it drops its caller and the answer. */
interface Pending {
  settle: ((reply: Reply) => void) | null;
}

/** A client of a thread on one file. */
export class ThreadClient {
  readonly #data: ThreadData;
  readonly #pending = new Map<number, Pending>();
  readonly #pulses = new Map<number, { readonly wire: PulseWire; readonly listener: PulseListener }>();
  #outgoing: Numbered[] = [];
  #last = 0;
  #thread: Thread | null = null;

  constructor(data: ThreadData) {
    this.#data = data;
  }

  /** Sends a request; the answer comes when its promise is on disk. */
  carry(request: Request): Promise<Reply> {
    return new Promise((settle) => {
      this.#pending.set(++this.#last, { settle });
      if (this.#outgoing.push([this.#last, request]) === 1) queueMicrotask(() => this.#flush());
    });
  }

  startPulse(pulse: Omit<PulseWire, "number">, listener: PulseListener): number {
    const wire = { ...pulse, number: ++this.#last };
    this.#open();
    this.#pulses.set(wire.number, { wire, listener });
    this.#post({ pulse: wire });
    return wire.number;
  }

  stopPulse(number: number): void {
    if (this.#pulses.delete(number) && this.#thread) this.#post({ unpulse: number });
  }

  /** Finishes all requests and ends the thread. */
  async close(): Promise<void> {
    this.#flush();
    this.#pulses.clear();
    await this.#thread?.stop();
  }

  #flush(): void {
    const requests = this.#outgoing;
    this.#outgoing = [];
    if (requests.length > 0) this.#send(requests);
  }

  /** Sends requests together; where one of them cannot be copied to another thread, each separately. */
  #send(requests: readonly Numbered[]): void {
    try {
      this.#post(requests);
    } catch (cause) {
      if (requests.length > 1) for (const request of requests) this.#send([request]);
      else for (const [number, { verb }] of requests) this.#finish(number, { error: notData(verb, cause) });
    }
  }

  #post(message: Message): void {
    const thread = this.#open();
    if (this.#pending.size > 0) thread.keepAlive(true);
    thread.post(message);
  }

  #open(): Thread {
    if (this.#thread) return this.#thread;
    const thread = startThread(new URL("./thread.js", import.meta.url), this.#data, {
      message: (answers) => {
        for (const [number, reply] of answers as Answer[]) {
          this.#finish(number, "error" in reply ? { error: unpackError(reply.error) } : reply);
        }
      },
      end: (cause) => this.#ended(cause),
    });
    thread.keepAlive(false);
    for (const { wire } of this.#pulses.values()) thread.post({ pulse: wire } satisfies Message);
    this.#thread = thread;
    return thread;
  }

  #ended(cause: Error): void {
    this.#thread = null;
    const error = new RedriveError("store_unavailable", `The store thread ended: ${cause.message}`, { cause });
    for (const number of this.#pending.keys()) this.#finish(number, { error });
    if (this.#pulses.size > 0) this.#open();
  }

  #finish(number: number, reply: Reply): void {
    if (number < 0) return hear(this.#pulses.get(-number)?.listener, reply);
    const pending = this.#pending.get(number);
    this.#pending.delete(number);
    if (this.#pending.size === 0) this.#thread?.keepAlive(false);
    pending?.settle?.(reply);
    if (pending) pending.settle = null;
  }
}

function notData(verb: string, cause: unknown): RedriveError {
  const message = `${verb}: expected plain data; got something that cannot be copied; send text and numbers`;
  return new RedriveError("invalid_argument", message, { cause });
}
