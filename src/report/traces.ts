// OpenTelemetry spans: `send {queue}` for an enqueue and `process {type}` for a run. Loaded only where traces are asked
// for. Which run is part of which trace is in core/trace.ts; the attributes have the names of the messaging conventions.
import type { Settled } from "../core/after-verdict.ts";
import { isRedriveError } from "../core/errors.ts";
import type { Failure, Job } from "../core/job.ts";
import type { NewJob } from "../core/new-job.ts";
import { masked, safeLine } from "../core/safe-text.ts";
import { isFirstRun, type JobTrace, readTrace, type TraceMode, traceText } from "../core/trace.ts";
import type { Verdict } from "../core/verdict.ts";
import type { Log } from "../system/log.ts";
import {
  API_RANGE,
  findOpenTelemetry,
  type OpenTelemetryApi,
  type Span,
  type SpanContext,
  type Tracer,
} from "../system/open-telemetry.ts";

/** The span of one run, or of one batch. */
export interface RunTrace {
  /** The id of its trace. */
  readonly traceId: string;
  /** Calls the handler, so that spans made in it are children of this one. */
  within<T>(call: () => T): T;
  /** Adds the verdict about one of its jobs. */
  judged(job: Job, verdict: Verdict): void;
  /** The store has answered the verdict about one of its jobs; the last answer ends the span. */
  settled(job: Job, settled: Settled): void;
}

/** Makes the spans of one program. */
export interface Traces {
  /**
   * Writes jobs under a span, with its context in each of them. The runs of several jobs, and those of a schedule, are
   * linked to the span; otherwise the first run becomes its child. The span of a schedule begins a trace.
   */
  send<T>(
    jobs: readonly NewJob[],
    write: (jobs: readonly NewJob[]) => Promise<T>,
    options?: { readonly isScheduled?: boolean },
  ): Promise<T>;
  /** Begins the span of a run, or of a batch. */
  run(jobs: readonly [Job, ...Job[]]): RunTrace;
}

/** Loads the API; null, with a warning, where it is missing. */
export async function openTraces(mode: TraceMode, log: Log): Promise<Traces | null> {
  const { api, why } = await findOpenTelemetry();
  if (api !== null) return new ApiTraces(api, mode);
  log.warn({}, `no traces are made: ${why}; run npm install @opentelemetry/api@${API_RANGE}, or leave traces out`);
  return null;
}

class ApiTraces implements Traces {
  readonly #api: OpenTelemetryApi;
  readonly #mode: TraceMode;
  /** It finds an SDK that the program registers later, too. */
  readonly #tracer: Tracer;

  constructor(api: OpenTelemetryApi, mode: TraceMode) {
    this.#api = api;
    this.#mode = mode;
    this.#tracer = api.trace.getTracer("redrive");
  }

  async send<T>(
    jobs: readonly NewJob[],
    write: (jobs: readonly NewJob[]) => Promise<T>,
    { isScheduled = false }: { readonly isScheduled?: boolean } = {},
  ): Promise<T> {
    const { isSpanContextValid, SpanKind, SpanStatusCode } = this.#api;
    const [{ queue } = { queue: "" }] = jobs;
    const span = this.#tracer.startSpan(`send ${queue}`, {
      kind: SpanKind.PRODUCER,
      root: isScheduled,
      attributes: attributesOf("send", jobs),
    });
    const sent = span.spanContext();
    // Without an SDK the API makes spans without a context.
    const trace = isSpanContextValid(sent) ? textOfSpan(sent, isScheduled || jobs.length > 1) : null;
    try {
      return await write(trace === null ? jobs : jobs.map((job) => ({ ...job, trace })));
    } catch (error) {
      const name = isRedriveError(error) ? error.code : error instanceof Error ? error.name : "Error";
      span.setAttribute("error.type", name).setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  }

  run(jobs: readonly [Job, ...Job[]]): RunTrace {
    const { context, ROOT_CONTEXT, SpanKind, trace } = this.#api;
    const [job] = jobs;
    const sent = jobs.map((each) => readTrace(each.trace));
    const isChild = this.#mode === "child" && jobs.length === 1 && isFirstRun(job) && sent[0]?.isLink === false;
    const contexts = sent.flatMap((each) => (each === null ? [] : [this.#contextOf(each)]));
    const [parent] = isChild ? contexts : [];
    const attributes = attributesOf("process", jobs);
    attributes["redrive.attempt"] = job.attempts + 1;
    const span = this.#tracer.startSpan(
      `process ${job.type}`,
      {
        kind: SpanKind.CONSUMER,
        attributes,
        ...(parent ? {} : { links: contexts.map((each) => ({ context: each })) }),
      },
      parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT,
    );
    const inside = trace.setSpan(ROOT_CONTEXT, span);
    let open = jobs.length;
    return {
      traceId: span.spanContext().traceId,
      within: (call) => context.with(inside, call),
      judged: (of, verdict) => this.#addVerdict(span, of, verdict, jobs.length > 1),
      settled(of, settled) {
        if (settled !== "counted")
          span.addEvent("job.stale", { "messaging.message.id": of.id, "redrive.answer": settled });
        open -= 1;
        if (open === 0) span.end();
      },
    };
  }

  #contextOf({ traceId, spanId, flags, state }: JobTrace): SpanContext {
    const traceState = state === null ? {} : { traceState: this.#api.createTraceState(state) };
    return { traceId, spanId, traceFlags: flags, isRemote: true, ...traceState };
  }

  #addVerdict(span: Span, job: Job, verdict: Verdict, isBatch: boolean): void {
    if (!span.isRecording()) return;
    span.addEvent(EVENTS[verdict.kind], Object.assign(detailsOf(verdict), { "messaging.message.id": job.id }));
    if (verdict.kind !== "retry" && verdict.kind !== "dead") return;
    span.setStatus({
      code: this.#api.SpanStatusCode.ERROR,
      ...(isBatch ? {} : { message: messageOf(verdict.failure) }),
    });
    span.setAttribute("error.type", verdict.failure.name);
  }
}

/** The names of the events of `redrive.on`. */
const EVENTS = {
  complete: "job.completed",
  retry: "job.retried",
  dead: "job.dead",
  release: "job.released",
  cancel: "job.cancelled",
} as const satisfies Record<Verdict["kind"], string>;

type Attributes = Record<string, string | number>;

/** Literals, because objects that are put together of others take several times as long. */
function attributesOf(operation: "send" | "process", jobs: readonly (NewJob | Job)[]): Attributes {
  const { queue = "", type = "", id = "" } = jobs[0] ?? {};
  if (jobs.length === 1)
    return {
      "messaging.system": "redrive",
      "messaging.operation.type": operation,
      "messaging.operation.name": operation,
      "messaging.destination.name": queue,
      "messaging.message.id": id,
      "redrive.type": type,
    };
  return {
    "messaging.system": "redrive",
    "messaging.operation.type": operation,
    "messaging.operation.name": operation,
    "messaging.destination.name": queue,
    "messaging.batch.message_count": jobs.length,
    "redrive.type": type,
  };
}

function detailsOf(verdict: Verdict): Attributes {
  if (verdict.kind === "release") return { "redrive.reason": verdict.reason };
  if (verdict.kind !== "retry" && verdict.kind !== "dead") return {};
  const { failure } = verdict;
  return {
    "error.type": failure.name,
    "redrive.class": failure.class,
    "redrive.message": messageOf(failure),
    ...(verdict.kind === "dead" ? { "redrive.reason": verdict.reason } : { "redrive.delay_ms": verdict.delayMs }),
  };
}

/** The message, without what looks like a password. */
function messageOf({ message }: Failure): string {
  return masked(safeLine(message));
}

/** The context of a span as a job stores it. */
function textOfSpan({ traceId, spanId, traceFlags, traceState }: SpanContext, isLink: boolean): string {
  return traceText({ traceId, spanId, flags: traceFlags, state: traceState?.serialize() ?? null, isLink });
}
