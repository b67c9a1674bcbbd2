// A program that enqueues jobs one by one and runs them, with or without OpenTelemetry spans: its CPU time per job. Spans
// are made by the SDK, sampled, processed in batches and dropped at the exporter.
import { createRedrive, defineJob } from "../../dist/index.js";
import { actor } from "../actor.mjs";

/** Registers the SDK; answers how many spans were exported. */
async function startSdk() {
  const { context, trace } = await import("@opentelemetry/api");
  const { AsyncLocalStorageContextManager } = await import("@opentelemetry/context-async-hooks");
  const { BasicTracerProvider, BatchSpanProcessor } = await import("@opentelemetry/sdk-trace-base");
  let count = 0;
  const exporter = {
    export(spans, done) {
      count += spans.length;
      done({ code: 0 });
    },
    shutdown: async () => undefined,
  };
  const processor = new BatchSpanProcessor(exporter, { maxQueueSize: 1_000_000, scheduledDelayMillis: 100 });
  const provider = new BasicTracerProvider({ spanProcessors: [processor] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(provider);
  return async () => {
    await provider.shutdown();
    return count;
  };
}

await actor(async ({ path, count, traced }, go) => {
  const exported = traced ? await startSdk() : async () => 0;
  const bench = defineJob("bench", { run: () => ({ ok: true }) });
  const redrive = await createRedrive({ store: `sqlite:${path}`, jobs: [bench], traces: traced, log: "error" });
  await go();
  const before = process.cpuUsage();
  for (let n = 0; n < count; n += 500)
    await Promise.all(Array.from({ length: Math.min(500, count - n) }, () => redrive.enqueue(bench, { n })));
  const { completed } = await redrive.worker().drain({ grace: 0 });
  const spans = await exported();
  const { user, system } = process.cpuUsage(before);
  await redrive.close();
  return { completed, spans, cpuUs: (user + system) / count };
});
