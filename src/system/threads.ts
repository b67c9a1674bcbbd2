// Threads: starting one, exchanging messages with it in batches, and blocking one on purpose.
import { type MessagePort, parentPort, receiveMessageOnPort, Worker, workerData } from "node:worker_threads";
import { passPrinted } from "./output.ts";

/** A started thread that takes messages. */
export interface Thread {
  post(message: unknown): void;
  /** Whether an idle thread keeps the process alive. */
  keepAlive(on: boolean): void;
  /** Asks the thread to finish its work and end, and waits until it has. */
  stop(): Promise<void>;
  /** Ends the thread at once, whatever it does. */
  end(): void;
}

/** The message that asks a thread to end. */
const STOP = "stop";

/**
 * Most objects of our threads are short-lived, so V8 needs little room for them; left to itself it would take four
 * times as much in a long run. A third of it is used at a time.
 */
const YOUNG_MB = 12;

/**
 * Starts a thread from a module and listens for its messages and its end. What a thread with code of the user prints goes
 * to stderr, because stdout is for the answer of the program.
 */
export function startThread(
  module: URL,
  data: unknown,
  on: { readonly message: (message: unknown) => void; readonly end: (reason: Error) => void },
  { hasUserCode = false } = {},
): Thread {
  // Flags of the process are not meant for our module; some, such as --input-type, would keep it from loading.
  const worker = new Worker(module, {
    workerData: data,
    execArgv: [],
    stdout: hasUserCode,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
  if (hasUserCode) passPrinted(worker.stdout);
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
      // A caller that waits for the end must not lose the process meanwhile.
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
    end: () => void worker.terminate(),
  };
}

/** Handles the messages of a thread. */
export interface ThreadListener {
  /** Takes the messages since the last turn; true asks for another turn, whether or not a message arrives. */
  turn(messages: unknown[]): boolean;
  /** Called once, when the owner has asked for the end and the last turn asked for no other. */
  stop(): void;
}

/** Inside a thread: its start data, and the way to send messages to its owner. */
export function insideThread(): {
  readonly data: unknown;
  /** Gives the listener its turns; between two of them timers and other events run. */
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
      // Never within a message event: those follow one another without end while the owner is busy.
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

/** Blocks the calling thread: a store thread, which has nothing else to do, or a program that makes one call. */
export function blockThread(ms: number): void {
  Atomics.wait(NEVER, 0, 0, ms);
}
