// A listener whose connection is another one of the server's from one question to the next: a pooler in transaction mode
// stands between, and nobody said so. What is said to the listener cannot arrive.
import { EventEmitter } from "node:events";
import type pg from "pg";
import { expect, it, onTestFinished } from "vitest";
import { Listener, wakeNames } from "../../../src/store/postgres/wake.ts";
import { realSystem } from "../../../src/system/real.ts";

/** A client as a pooler shows it: which process of the server answers, it says by itself. */
class Pooled extends EventEmitter {
  readonly #backend: () => number;

  constructor(backend: () => number) {
    super();
    this.#backend = backend;
  }

  async connect(): Promise<void> {}
  async end(): Promise<void> {}
  async query(text: string): Promise<unknown> {
    const found = { rows: [{ pid: this.#backend() }] };
    return text.includes(";") ? [{ rows: [] }, found] : found;
  }
}

/** A listener on such connections, on a clock on which no wait takes long; counts them, and what is noticed. */
function listen(backend: () => number) {
  const seen = { connections: 0, noticed: 0, checks: 0 };
  const sleep = async (): Promise<void> => {
    seen.checks += 1;
    await new Promise((resolve) => setImmediate(resolve));
  };
  const listener = new Listener({
    names: wakeNames("s"),
    system: { ...realSystem, sleep },
    connect: () => {
      seen.connections += 1;
      return new Pooled(backend) as unknown as pg.Client;
    },
    listeners: [],
    onPooler: () => (seen.noticed += 1),
  });
  onTestFinished(() => listener.close());
  return { seen, listener };
}

it("a pooler that gives every transaction another connection is noticed once, and listened through no more", async () => {
  let count = 0;
  const { seen, listener } = listen(() => ++count);
  await expect.poll(() => seen.noticed, { timeout: 20_000 }).toBe(1);
  await listener.close();
  expect(seen).toMatchObject({ connections: 1, noticed: 1 });
});

it("a connection that stays the same is not taken for one", async () => {
  const { seen } = listen(() => 4711);
  await expect.poll(() => seen.checks, { timeout: 20_000 }).toBeGreaterThan(20);
  expect(seen).toMatchObject({ connections: 1, noticed: 0 });
});
