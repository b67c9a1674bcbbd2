// Everything that waits, tells the time, draws random numbers, makes ids or knows who runs the process, as one parameter. Production passes
// `realSystem`; the simulation passes its own, and the code in between cannot tell the difference.

/** Clock, timers, randomness and ids as the rest of the library uses them. */
export interface System {
  /** Epoch milliseconds. */
  now(): number;
  /** Milliseconds on a clock that never steps. */
  monotonic(): number;
  /** Resolves after the delay, or at once when the signal fires; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls back once after the delay; returns a function that cancels it. */
  after(ms: number, callback: () => void): () => void;
  /** From 0 up to, but not including, 1. */
  random(): number;
  /** A new job id: a UUID of version 7, ascending within a process. */
  jobId(): string;
  /** 128 random bits as 32 hexadecimal digits. */
  nonce(): string;
  /** A short random id for a worker. */
  workerId(): string;
  /** Who runs this process, for the event log: `REDRIVE_ACTOR`, else the user and the host. */
  actor(): string;
}
