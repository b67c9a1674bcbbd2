// Ends a function of the user that takes too long, even one that loops without ever waiting. The engine can interrupt
// code only while it runs inside a script with a time limit, so the function is called from such a script.
import { createContext, Script } from "node:vm";
import { realSystem } from "./real.ts";

/** The function has taken longer than it may. */
export class TimeBoxError extends Error {
  override readonly name = "TimeBoxError";
}

const box: { work: (() => unknown) | null; answer: unknown } = { work: null, answer: undefined };
let call: ((ms: number) => void) | null = null;

/** Makes the script on first use. */
function prepared(): (ms: number) => void {
  const context = createContext(box);
  const script = new Script("answer = work()");
  return (timeout) => void script.runInContext(context, { timeout });
}

/**
 * The answer of the function; rejects with a TimeBoxError after the time limit. A loop is ended; a promise that does not
 * settle is left alone.
 */
export async function withinTime<T>(ms: number, work: () => T | Promise<T>): Promise<T> {
  call ??= prepared();
  box.work = work;
  try {
    call(ms);
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code === "ERR_SCRIPT_EXECUTION_TIMEOUT") throw new TimeBoxError();
    throw error;
  }
  const answer = box.answer as T | Promise<T>;
  box.work = box.answer = null;
  return settledWithin(ms, Promise.resolve(answer));
}

/** The value of the promise; rejects with a TimeBoxError where it has not settled in time. */
export function settledWithin<T>(ms: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = realSystem.after(ms, () => reject(new TimeBoxError()));
    promise.then(resolve, reject).finally(stop);
  });
}
