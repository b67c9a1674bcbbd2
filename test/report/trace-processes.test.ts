// Traces over two processes with a real SDK: one enqueues, the other runs. Environment variables
// name another Node, another folder of packages and another copy of the library: so it also runs with SDK 3 on a newer Node.
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { builtModule } from "../support/built.ts";
import { testPath } from "../support/database-file.ts";
import { type ShownSpan, spansOf, type TracingPlace } from "../support/traces.ts";

const PLACE: TracingPlace = {
  node: process.env["REDRIVE_PROVE_NODE"] ?? process.execPath,
  folder: process.env["REDRIVE_PROVE_FOLDER"] ?? fileURLToPath(new URL("../..", import.meta.url)),
  library: process.env["REDRIVE_PROVE_LIBRARY"] ?? builtModule("index.js"),
};
const [PRODUCER, CONSUMER, ERROR] = [3, 4, 2];

async function twoProcesses(mode: "child" | "link") {
  const store = `sqlite:${testPath()}`;
  const sent = await spansOf(PLACE, store, "send", mode);
  const ran = await spansOf(PLACE, store, "work", mode);
  const named = (spans: readonly ShownSpan[], name: string, type?: string): ShownSpan[] =>
    spans.filter((span) => span.name === name && (type === undefined || span.attributes["redrive.type"] === type));
  const only = (spans: readonly ShownSpan[]): ShownSpan => {
    expect(spans).toHaveLength(1);
    return spans[0] as ShownSpan;
  };
  const send = (type: string): ShownSpan => only(named(sent, "send default", type));
  return { sent, ran, named, only, send };
}

describe("traces over two processes", () => {
  it("make the first run a child of its enqueue, and link every other one", { timeout: 120_000 }, async () => {
    const { sent, ran, named, only, send } = await twoProcesses("child");
    const request = only(named(sent, "request"));
    const flaky = send("flaky");
    expect(flaky).toMatchObject({ kind: PRODUCER, parent: request.spanId, traceId: request.traceId });
    const [first, retry] = named(ran, "process flaky") as [ShownSpan, ShownSpan];
    expect(first).toMatchObject({
      kind: CONSUMER,
      traceId: request.traceId,
      parent: flaky.spanId,
      links: [],
      events: ["job.retried"],
      status: ERROR,
      attributes: {
        "messaging.system": "redrive",
        "messaging.destination.name": "default",
        "messaging.operation.type": "process",
        "messaging.operation.name": "process",
        "messaging.message.id": flaky.attributes["messaging.message.id"],
        "redrive.attempt": 1,
        "error.type": "Error",
      },
    });
    expect(retry).toMatchObject({ parent: null, links: [flaky.spanId], events: ["job.completed"], status: 0 });
    expect(retry.traceId).not.toBe(request.traceId);
    expect(named(ran, "inside").map(({ parent }) => parent)).toEqual([first.spanId, retry.spanId]);

    const many = send("many");
    expect(many.attributes["messaging.batch.message_count"]).toBe(3);
    const runs = named(ran, "process many");
    expect(runs.map(({ parent, links }) => [parent, links])).toEqual(Array(3).fill([null, [many.spanId]]));
    expect(new Set(runs.map(({ traceId }) => traceId)).size).toBe(3);

    const together = send("together");
    expect(only(named(ran, "process together"))).toMatchObject({
      parent: null,
      links: [together.spanId, together.spanId],
      events: ["job.completed", "job.completed"],
      attributes: { "messaging.batch.message_count": 2 },
    });
  });

  it("link every run where the option says so", { timeout: 120_000 }, async () => {
    const { ran, named, send } = await twoProcesses("link");
    const links = named(ran, "process flaky").map(({ parent, links: linked }) => [parent, linked]);
    expect(links).toEqual(Array(2).fill([null, [send("flaky").spanId]]));
  });
});
