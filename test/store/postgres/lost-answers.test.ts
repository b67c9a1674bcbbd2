// A network that cuts the connection after a verdict was committed and before its answer came: the worker sends it again,
// is refused, and still tells the truth about its own run.
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { createRedrive, defineJob, PermanentError } from "../../../src/index.ts";
import { testPool, testSchema } from "../../support/postgres-queue.ts";
import { startTcpProxy } from "../../support/tcp-proxy.ts";
import { withPg } from "../../support/transaction-kinds.ts";

const SERVER = new URL(inject("postgres18"));
const JOBS = 50;

describe("a network that loses the answer to", () => {
  it.each([
    ["completions", "settle_complete", "completed"],
    ["deaths", "settle_dead", "dead"],
  ] as const)("%s does not make them somebody else's", async (_what, wanted, state) => {
    const { schema } = testSchema(SERVER.href);
    const proxy = await startTcpProxy(Number(SERVER.port));
    onTestFinished(() => proxy.close());
    const through = Object.assign(new URL(SERVER), { port: String(proxy.port) });
    const died = new Set<string>();
    const job = defineJob("thing", {
      run: () => {
        if (state === "dead") throw new PermanentError("broken");
        return "result";
      },
      onDead: ({ id }) => void died.add(id),
    });
    const lines: string[] = [];
    const note = (_fields: object, text: string): void => void lines.push(text);
    const log = { debug: () => undefined, info: () => undefined, warn: note, error: note };
    const redrive = await createRedrive({ store: `${through.href}?schema=${schema}`, jobs: [job], log });
    onTestFinished(() => redrive.close());
    const heard = new Set<string>();
    redrive.on(`job.${state}`, (event) => void heard.add(event.job.id));
    const worker = redrive.worker({ concurrency: JOBS });
    // A worker that starts asks for plans of what it will send.
    await worker.start();
    const cut = proxy.cutReply((request) => request.includes(wanted), 5_000);
    await redrive.enqueueMany(
      job,
      Array.from({ length: JOBS }, () => null),
    );
    const counts = await worker.drain();
    expect(await cut).toBe(true);
    expect(counts).toMatchObject({ [state]: JOBS, stale: 0 });
    expect(heard.size).toBe(JOBS);
    expect(died.size).toBe(state === "dead" ? JOBS : 0);
    expect(lines.filter((line) => line.includes("lease lost"))).toEqual([]);
    expect(lines.filter((line) => line.includes("the store did not answer"))).toHaveLength(1);
  });

  it("the question whether the handler's own completion committed asks again", async () => {
    const { schema } = testSchema(SERVER.href);
    const pool = testPool(SERVER.href, 1);
    const proxy = await startTcpProxy(Number(SERVER.port));
    onTestFinished(() => proxy.close());
    const through = Object.assign(new URL(SERVER), { port: String(proxy.port) });
    const job = defineJob("thing", {
      run: (_input: null, ctx) => withPg(pool, (tx) => ctx.complete("own", { tx })),
    });
    const redrive = await createRedrive({ store: `${through.href}?schema=${schema}`, jobs: [job], log: "silent" });
    onTestFinished(() => redrive.close());
    const worker = redrive.worker();
    await worker.start();
    const cut = proxy.cutReply((request) => request.includes("job_read"), 5_000);
    await redrive.enqueue(job, null);
    const counts = await worker.drain();
    expect(await cut).toBe(true);
    expect(counts).toMatchObject({ completed: 1, stale: 0 });
  });
});
