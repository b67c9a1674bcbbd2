// What lists read of a store: without --json they show no payload, and a page of long ones would fill the memory.
import { expect, it, vi } from "vitest";
import type { Io } from "../../src/cli/io.ts";
import { inlineStore } from "../support/database-file.ts";
import { add } from "../support/runs.ts";

const asked: unknown[] = [];
vi.mock("../../src/open-store.ts", async (load) => {
  const { openStore } = await load<typeof import("../../src/open-store.ts")>();
  return {
    openStore: async (url: string) => {
      const store = await openStore(url, { brief: true });
      const noting =
        <Q, A>(ask: (query: Q) => A) =>
        (query: Q): A => {
          asked.push((query as { readonly payloads?: boolean }).payloads);
          return ask(query);
        };
      return { ...store, list: noting(store.list), deadLetters: noting(store.deadLetters) };
    },
  };
});
const { run } = await import("../../src/cli/main.ts");

it.each([["jobs"], ["dlq"]])("%s list reads payloads only for --json", async (command) => {
  const { path, store } = await inlineStore();
  await add(store);
  const sink = { write: () => true };
  const stdin = (async function* () {})();
  const io: Io = { stdout: sink, stderr: sink, stdin, env: {}, cwd: "/", program: "redrive", onSignal: () => () => {} };
  for (const [flags, payloads] of [
    [[], false],
    [["--json"], true],
  ] as const) {
    asked.length = 0;
    expect(await run([command, "list", "--store", `sqlite:${path}`, ...flags], io)).toBe(0);
    expect(asked[0]).toBe(payloads);
  }
});
