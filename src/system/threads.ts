// Threads: starting one, talking to it in batches, and blocking one on purpose.
import { type MessagePort, parentPort, receiveMessageOnPort, Worker, workerData } from "node:worker_threads";

/** A thread that was started and can be talked to. */
export interface Thread {
  post(message: unknown): void;
  /** Whether an idle thread keeps the process alive. */
  keepAlive(on: boolean): void;
  /** Asks the thread to finish what it has and end, and waits until it has. */
  stop(): Promise<void>;
}

/** The message that asks a thread to end. */
const STOP = "stop";

/**
 * What a thread of ours makes is soon over, so V8 needs little room for it, and would take four times as
 * much in a long run. A third of it is used at a time.
 */
const YOUNG_MB = 12;

/** Starts a thread from a module and listens to what it says and to its end. */
export function startThread(
  module: URL,
  data: unknown,
  on: { readonly message: (message: unknown) => void; readonly end: (reason: Error) => void },
): Thread {
  // Flags of the process are not for a module of ours; some, such as --input-type, would keep it from loading.
  const worker = new Worker(module, {
    workerData: data,
    execArgv: [],
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
  let reason: Error | null = null;
  worker.on("message", on.message);
  worker.on("error", (error) => {
    reason = error instanceof Error ? error : new Error(String(error));
  });
  const exited = new Promise<void>((resolve) => {
    worker.on("exit", (code) => {
      on.end(reason ?? new Error(`The thread ended with exit code ${code}.`));
      resolve();
    });
  });
  let stopping = false;
  return {
    post: (message) => worker.postMessage(message),
    keepAlive(alive) {
      // Whoever waits for the end must not lose the process under their feet.
      if (stopping) return;
      if (alive) worker.ref();
      else worker.unref();
    },
    stop() {
      stopping = true;
      worker.ref();
      worker.postMessage(STOP);
      return exited;
    },
  };
}

/** What a thread does with its messages. */
export interface ThreadListener {
  /** Takes what has arrived since the last turn; true asks for another turn, whether or not something arrives. */
  turn(messages: unknown[]): boolean;
  /** Called once, when the owner has asked for the end and the last turn wants no other. */
  stop(): void;
}

/** Inside a thread: what it was started with, and the way to talk to its owner. */
export function insideThread(): {
  readonly data: unknown;
  /** Gives the listener its turns; between two of them timers and whatever was done beside have theirs. */
  on(listener: ThreadListener): void;
  post(message: unknown): void;
} {
  const port = parentPort as MessagePort;
  return {
    data: workerData,
    on(listener) {
      let inbox: unknown[] = [];
      let [due, stopping] = [false, false];
      const take = (message: unknown): void => {
        if (message === STOP) stopping = true;
        else inbox.push(message);
      };
      const turn = (): void => {
        due = false;
        for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) take(next.message);
        const messages = inbox;
        inbox = [];
        if (listener.turn(messages)) return later();
        if (!stopping) return;
        listener.stop();
        port.close();
      };
      // Never within the event of a message: those follow one another without end while the owner is busy.
      const later = (): void => {
        if (!due) setImmediate(turn);
        due = true;
      };
      port.on("message", (message: unknown) => {
        take(message);
        later();
      });
    },
    post: (message) => port.postMessage(message),
  };
}

const NEVER = new Int32Array(new SharedArrayBuffer(4));

/** Blocks the calling thread: a store thread, which has nothing else to do, or a program that makes one call and ends. */
export function blockThread(ms: number): void {
  Atomics.wait(NEVER, 0, 0, ms);
}
