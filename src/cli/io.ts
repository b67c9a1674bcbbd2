// The world as a command sees it: streams, environment, working directory and signals, as one parameter. The real one is
// in process.ts; tests bring their own, so that every command runs without a process.

/** Where text goes. */
export interface Sink {
  /** False asks the writer to wait for `drain`. */
  write(text: string): boolean;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  /** True once nobody reads any more, as after `| head`. */
  readonly isClosed?: boolean;
  /** Resolves when there is room again, or nobody reads any more. */
  drained?(): Promise<void>;
}

/** A signal that asks a program to stop. */
export type StopSignal = "SIGINT" | "SIGTERM";

/** What a command may touch. */
export interface Io {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly stdin: AsyncIterable<Uint8Array | string> & { readonly isTTY?: boolean | undefined };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** How the user calls us, for examples that work as typed. */
  readonly program: string;
  /** Listens to signals that ask to stop; returns the way to stop listening. */
  onSignal(listener: (signal: StopSignal) => void): () => void;
}
