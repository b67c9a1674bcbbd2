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

/** Starts a thread from a module and listens to what it says and to its end. */
export function startThread(
  module: URL,
  data: unknown,
  on: { readonly message: (message: unknown) => void; readonly end: (reason: Error) => void },
): Thread {
  // Flags of the process are not for a module of ours; some, such as --input-type, would keep it from loading.
  const worker = new Worker(module, { workerData: data, execArgv: [] });
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

/** Inside a thread: what it was started with, and the way to talk to its owner. */
export function insideThread(): {
  readonly data: unknown;
  /** Calls back with the first message and everything that has arrived by then, and once when asked to end. */
  on(listener: { readonly messages: (messages: unknown[]) => void; readonly stop: () => void }): void;
  /** What has arrived since, without going back to the event loop. */
  arrived(): unknown[];
  post(message: unknown): void;
} {
  const port = parentPort as MessagePort;
  let stopping = false;
  const arrived = (): unknown[] => {
    const messages: unknown[] = [];
    for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) {
      if (next.message === STOP) stopping = true;
      else messages.push(next.message);
    }
    return messages;
  };
  return {
    data: workerData,
    on({ messages, stop }) {
      port.on("message", (first: unknown) => {
        if (first === STOP) stopping = true;
        else messages([first, ...arrived()]);
        if (!stopping) return;
        stop();
        port.close();
      });
    },
    arrived,
    post: (message) => port.postMessage(message),
  };
}

const NEVER = new Int32Array(new SharedArrayBuffer(4));

/** Blocks the calling thread. Never on the main thread of a program; a store thread has nothing else to do. */
export function blockThread(ms: number): void {
  Atomics.wait(NEVER, 0, 0, ms);
}
