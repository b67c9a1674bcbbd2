// Spans with a real SDK in this process, and what happens where the package is missing or unfit.
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createRedrive, defineJob, PermanentError, type RedriveOptions } from "../../src/index.ts";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import { collectLog } from "../../src/testing/collect-log.ts";
import { builtModule } from "../support/built.ts";
import { testFolder } from "../support/database-file.ts";
import { newJob } from "../support/new-job.ts";

const exporter = new InMemorySpanExporter();
beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
});
beforeEach(() => exporter.reset());

const spans = (name: string) => exporter.getFinishedSpans().filter((span) => span.name === name);
const ids = (name: string) => spans(name).map((span) => span.spanContext().spanId);

async function program(options: Partial<RedriveOptions> = {}) {
  let isBad = true;
  const job = defineJob("thing", {
    run() {
      if (isBad) throw new PermanentError("The input is wrong: postgres://ada:secret@db/x");
    },
  });
  const log = collectLog();
  const store = createMemoryStore({ clock: Date.now });
  const redrive = await createRedrive({ store, jobs: [job], traces: true, log, ...options });
  onTestFinished(() => redrive.close());
  const drain = () => redrive.worker({ concurrency: 1 }).drain({ grace: 0 });
  return { redrive, store, job, log, drain, mend: () => void (isBad = false) };
}

describe("spans", () => {
  it("link the run after a redrive to the enqueue, and say the verdict without secrets", async () => {
    const { redrive, job, drain, mend } = await program();
    const { id } = await redrive.enqueue(job, {});
    await drain();
    mend();
    await redrive.deadLetters.retry({ jobId: id });
    await drain();
    const [first, again] = spans("process thing");
    expect(first?.events).toMatchObject([{ name: "job.dead", attributes: { "redrive.reason": "permanent" } }]);
    expect(JSON.stringify(first?.events)).not.toContain("secret");
    expect(first?.status.message).not.toContain("secret");
    expect(first?.parentSpanContext?.spanId).toBe(ids("send default")[0]);
    expect(again?.parentSpanContext).toBeUndefined();
    expect(again?.links.map((link) => link.context.spanId)).toEqual(ids("send default"));
  });

  it("of a broken column begin a new trace", async () => {
    const { store, drain, mend } = await program();
    mend();
    await store.enqueue([newJob({ type: "thing", payload: "{}", trace: "00-broken" })]);
    await drain();
    expect(spans("process thing")).toMatchObject([{ parentSpanContext: undefined, links: [] }]);
  });

  it("of a schedule are linked", async () => {
    const { redrive, job, drain, mend } = await program();
    mend();
    await redrive.schedules.set("often", { job, every: "1s", input: {} });
    for (let times = 0; times < 50 && spans("process thing").length === 0; times++) {
      await redrive.worker({ concurrency: 1 }).drain({ grace: "200ms" });
    }
    const [run] = spans("process thing");
    expect(run?.parentSpanContext).toBeUndefined();
    expect(run?.links.map((link) => link.context.spanId)).toEqual(ids("send default").slice(0, 1));
    await redrive.schedules.remove("often");
    await drain();
  });

  it("tell of an enqueue that was refused", async () => {
    const { redrive, job } = await program();
    await redrive.enqueue(job, { n: 1 }, { key: "k" });
    await expect(redrive.enqueue(job, { n: 2 }, { key: "k" })).rejects.toMatchObject({ code: "conflict" });
    expect(spans("send default").map(({ status, attributes }) => [status.code, attributes["error.type"]])).toEqual([
      [0, undefined],
      [2, "conflict"],
    ]);
  });

  it("give their trace id to the log lines about their job", async () => {
    const { redrive, job, drain, log, mend } = await program();
    const { id } = await redrive.enqueue(job, {});
    await drain();
    mend();
    await redrive.deadLetters.retry({ jobId: id });
    await drain();
    const traceIds = spans("process thing").map((span) => span.spanContext().traceId);
    const said = (what: string) => log.said(what).map(({ fields }) => fields["trace_id"]);
    expect(said("processing")).toEqual(traceIds);
    expect(said("moved to the dead letter queue")).toEqual(traceIds.slice(0, 1));
    expect(said("completed")).toEqual(traceIds.slice(1));
    expect(log.lines.filter(({ fields }) => fields["job"] === id && fields["trace_id"] === undefined)).toEqual([]);
  });

  it("are not made unless asked for, and the column stays empty", async () => {
    const { redrive, job, drain, log } = await program({ traces: false });
    const { id } = await redrive.enqueue(job, {});
    await drain();
    expect(exporter.getFinishedSpans()).toEqual([]);
    expect(await redrive.store.get([id])).toMatchObject([{ trace: null }]);
    expect(log.lines.filter(({ fields }) => "trace_id" in fields)).toEqual([]);
  });
});

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PACKAGES = ["commander", "croner", "csv-parse", "jiti", "yaml"];

/** A project with this library and, where a version is given, a package of that version in place of OpenTelemetry's. */
function project(version: string | null): string {
  const folder = testFolder();
  cpSync(dirname(fileURLToPath(builtModule("index.js"))), join(folder, "dist"), { recursive: true });
  writeFileSync(join(folder, "package.json"), '{"name":"redrive","version":"0.1.0","type":"module"}');
  mkdirSync(join(folder, "node_modules", "@opentelemetry"), { recursive: true });
  for (const name of PACKAGES) symlinkSync(join(ROOT, "node_modules", name), join(folder, "node_modules", name));
  if (version !== null) {
    const api = join(folder, "node_modules", "@opentelemetry", "api");
    mkdirSync(api);
    writeFileSync(join(api, "package.json"), JSON.stringify({ name: "@opentelemetry/api", version, main: "index.js" }));
    writeFileSync(join(api, "index.js"), 'throw new Error("This package must not be loaded.");');
  }
  const work = `import { createRedrive, defineJob } from "./dist/index.js";
    const job = defineJob("thing", { run: () => undefined });
    const redrive = await createRedrive({ store: "memory:", jobs: [job], traces: true });
    await redrive.enqueue(job, {});
    console.log(JSON.stringify(await redrive.worker().drain({ grace: 0 })));
    await redrive.close();`;
  writeFileSync(join(folder, "work.mjs"), work);
  return folder;
}

describe.each([
  ["without the package", null, "@opentelemetry/api is not installed"],
  ["with another major of it", "2.0.0", "@opentelemetry/api is 2.0.0, and ^1.9.0 is needed"],
])("%s", (_what, version, why) => {
  it("work goes on, and a warning says what is missing", { timeout: 60_000 }, async () => {
    const cwd = project(version);
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ["work.mjs"], { cwd });
    expect(JSON.parse(stdout)).toMatchObject({ completed: 1 });
    expect(stderr).toContain(`no traces are made: ${why}; run npm install @opentelemetry/api@^1.9.0`);
  });
});
