// A program that makes OpenTelemetry spans: it enqueues jobs, or works until none is left, and prints its spans as JSON.
// Arguments: the folder from which packages are found, the URL of the store, the role (`send` or `work`), the mode.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, url, role, mode] = process.argv.slice(2);
const { resolve } = createRequire(`${folder}/`);
const load = async (name) => import(pathToFileURL(resolve(name)).href);
// The third major of the SDK has other names for the package and the class.
const sdk = await load("@opentelemetry/sdk-trace-base").catch(() => load("@opentelemetry/sdk-trace"));
const { BasicTracerProvider: Provider = sdk.TracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = sdk;
const { AsyncLocalStorageContextManager } = await load("@opentelemetry/context-async-hooks");
const { context, trace } = await load("@opentelemetry/api");
const exporter = new InMemorySpanExporter();
// Since then the processor takes options, too.
const simple = new SimpleSpanProcessor(sdk.TracerProvider ? { exporter } : exporter);
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(new Provider({ spanProcessors: [simple] }));

const { createRedrive, defineJob, done } = await import(process.env.REDRIVE_LIBRARY);
const tracer = trace.getTracer("program");
let tries = 0;
const flaky = defineJob("flaky", {
  backoff: () => 1,
  run() {
    tracer.startSpan("inside").end();
    tries += 1;
    if (tries === 1) throw new Error("the first run fails");
  },
});
const many = defineJob("many", { run: () => undefined });
const together = defineJob("together", {
  batch: { size: 10 },
  runBatch: (items) => items.map(() => done()),
});
const traces = mode === "link" ? "link" : true;
const redrive = await createRedrive({ store: url, jobs: [flaky, many, together], traces, log: "error" });
if (role === "send") {
  await tracer.startActiveSpan("request", async (span) => {
    await redrive.enqueue(flaky, {});
    await redrive.enqueueMany(many, [{}, {}, {}]);
    span.end();
  });
  await redrive.enqueueMany(together, [{}, {}]);
} else await redrive.worker({ concurrency: 1, poll: 20 }).drain({ grace: "1s" });
await redrive.close();

const shown = exporter.getFinishedSpans().map((span) => ({
  name: span.name,
  kind: span.kind,
  traceId: span.spanContext().traceId,
  spanId: span.spanContext().spanId,
  parent: span.parentSpanContext?.spanId ?? null,
  links: span.links.map(({ context: linked }) => linked.spanId),
  events: span.events.map(({ name }) => name),
  status: span.status.code,
  attributes: span.attributes,
}));
process.stdout.write(`${JSON.stringify(shown)}\n`);
