// Everything a command may touch, as one parameter: streams, environment, working directory and signals. The real one
// is in process.ts; tests pass their own, so that every command runs without a process.
import type { Outlet } from "../system/output.ts";

/** A destination of text, written to through `put`. */
export interface Sink extends Outlet {
  /** Its file descriptor, where there is one. */
  readonly fd?: number | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  /** True once the reader has left, as after `| head`. */
  readonly isClosed?: boolean;
  /** Resolves when there is room again, or the reader has left. */
  drained?(): Promise<void>;
}

/** The signals that ask a program to stop; SIGHUP comes when its terminal is closed. */
export const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** One of `STOP_SIGNALS`. */
export type StopSignal = (typeof STOP_SIGNALS)[number];

/** What a command may touch. */
export interface Io {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly stdin: AsyncIterable<Uint8Array | string> & {
    readonly isTTY?: boolean | undefined;
    /** Its file descriptor, where there is one. */
    readonly fd?: number;
  };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** How the user called the program, so that examples work as typed. */
  readonly program: string;
  /** Listens for signals that ask to stop; returns a function that stops listening. */
  onSignal(listener: (signal: StopSignal) => void): () => void;
}
