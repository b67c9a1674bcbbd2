// The trace context of a job as text: a W3C `traceparent`, then the `tracestate` where there is one. Before it stands
// `link` where runs must not become part of the trace of the enqueue.
//
//   the run                                             its trace
//   the first, of a job that was enqueued singly        that of the enqueue, as a child
//   the first, of one of several, or of a schedule      a new one, with a link to the enqueue
//   any later one: a retry, a redrive, a released run   a new one, with a link to the enqueue
//   of a batch of several jobs                          a new one, with a link to each enqueue
import type { Job } from "./job.ts";
import { invalid } from "./options.ts";

/** How runs and enqueues are connected: the first run as a child of its enqueue, or every run by a link. */
export type TraceMode = "child" | "link";

/** How traces are made, from the option `traces`; null where none are. */
export function traceMode(traces: unknown = false): TraceMode | null {
  if (traces === false || traces === null) return null;
  if (traces === true) return "child";
  if (traces === "link") return "link";
  throw invalid("traces", 'true, false or "link"', traces, "use one of these");
}

/** The trace context of an enqueue. */
export interface JobTrace {
  readonly traceId: string;
  readonly spanId: string;
  readonly flags: number;
  /** The `tracestate` of the vendors; null without one. */
  readonly state: string | null;
  /** Runs are linked to it and never its children. */
  readonly isLink: boolean;
}

const TEXT =
  /^(link )?(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?: ([ -~]{1,512}))?$/;
const STATE_MOST = 512;

/** The text of a trace context; a `tracestate` over the length that W3C guarantees is left out. */
export function traceText({ traceId, spanId, flags, state, isLink }: JobTrace): string {
  const parent = `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, "0")}`;
  const kept = state === null || state === "" || state.length > STATE_MOST ? "" : ` ${state}`;
  return `${isLink ? "link " : ""}${parent}${kept}`;
}

/** The trace context of a job; null without one, and where the text is broken. */
export function readTrace(text: string | null): JobTrace | null {
  const found = text === null ? null : TEXT.exec(text);
  if (!found) return null;
  const [, link, traceId = "", spanId = "", flags = "", state = null] = found;
  return { traceId, spanId, flags: Number.parseInt(flags, 16), state, isLink: link !== undefined };
}

/** True for a run that may be a child of its enqueue: none came before it. */
export function isFirstRun({ attempts, crashes, releases, generation }: Job): boolean {
  return attempts === 0 && crashes === 0 && releases === 0 && generation === 1;
}
