// The world as a command sees it: streams, environment, working directory and signals, as one parameter. The real one is
// in process.ts; tests bring their own, so that every command runs without a process.
import type { Outlet } from "../system/output.ts";

/** Where text goes, by way of `put`. */
export interface Sink extends Outlet {
  /** The descriptor behind it, where there is one. */
  readonly fd?: number | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  /** True once nobody reads any more, as after `| head`. */
  readonly isClosed?: boolean;
  /** Resolves when there is room again, or nobody reads any more. */
  drained?(): Promise<void>;
}

/** The signals that ask a program to stop; the last one comes when its terminal is closed. */
export const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** One of `STOP_SIGNALS`. */
export type StopSignal = (typeof STOP_SIGNALS)[number];

/** What a command may touch. */
export interface Io {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly stdin: AsyncIterable<Uint8Array | string> & {
    readonly isTTY?: boolean | undefined;
    /** The descriptor behind it, where there is one. */
    readonly fd?: number;
  };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** How the user calls us, for examples that work as typed. */
  readonly program: string;
  /** Listens to signals that ask to stop; returns the way to stop listening. */
  onSignal(listener: (signal: StopSignal) => void): () => void;
}
