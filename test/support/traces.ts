// Spans of programs in other processes, as test/support/tracing-process.mjs prints them.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const PROGRAM = fileURLToPath(new URL("tracing-process.mjs", import.meta.url));

/** A span that has ended. */
export interface ShownSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parent: string | null;
  /** The ids of the spans that it links to. */
  readonly links: readonly string[];
  readonly events: readonly string[];
  readonly status: number;
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** What the processes run on. */
export interface TracingPlace {
  readonly node: string;
  /** The folder from which the OpenTelemetry packages are found. */
  readonly folder: string;
  /** The address of the library. */
  readonly library: string;
}

/** Runs one process to its end; answers its spans. */
export async function spansOf(
  { node, folder, library }: TracingPlace,
  store: string,
  role: "send" | "work",
  mode: "child" | "link",
): Promise<ShownSpan[]> {
  const env = { ...process.env, REDRIVE_LIBRARY: library };
  const options = { env, timeout: 60_000 };
  const { stdout } = await promisify(execFile)(node, [PROGRAM, folder, store, role, mode], options);
  return JSON.parse(stdout) as ShownSpan[];
}
