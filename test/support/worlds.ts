// Worlds for tests: a fresh store of each kind, with a clock in the test's hands or the real one.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMemoryStore } from "../../src/store/memory/index.ts";
import { openEngine, type Reply } from "../../src/store/sqlite/engine.ts";
import { type Carrier, packError, sqliteStore, unpackError } from "../../src/store/sqlite/facade.ts";
import { createInlineSqliteStore } from "../../src/store/sqlite/inline.ts";
import type { Store } from "../../src/store/store.ts";
import { VERBS } from "../../src/store/verb-facts.ts";
import { blockThread } from "../../src/system/threads.ts";
import type { World } from "../conformance/suite.ts";
import { importBuilt } from "./built.ts";

/** Where injected clocks begin: 2026-01-01, with milliseconds that a store which rounds would lose. */
export const START = 1_767_225_600_123;

/** A memory store. */
export async function memoryWorld(): Promise<World> {
  const clock = { now: START };
  const store = createMemoryStore({ clock: () => clock.now });
  await store.migrate();
  return { store, clock, peer: async () => store, close: () => store.close() };
}

/** A SQLite store on a file of its own, in this thread. */
export function sqliteWorld(): Promise<World> {
  const clock = { now: START };
  return onFile((path) => createInlineSqliteStore({ path, clock: () => clock.now }), clock);
}

/**
 * The same over requests and answers that are copied as between threads, with a second connection that only reads for what
 * people ask: the store thread without its thread, under a clock in the test's hands.
 */
export function copyingSqliteWorld(): Promise<World> {
  const clock = { now: START };
  const open = (path: string): Store => {
    const common = { path, clock: () => clock.now, blockMs: blockThread, random: Math.random };
    const [line, reader] = [openEngine(common), openEngine({ ...common, readOnly: true })];
    const carry: Carrier = async (request) => {
      const engine = VERBS[request.verb].forPeople ? reader : line;
      const reply = engine.carryOut([structuredClone(request)])[0] as Reply;
      return "error" in reply
        ? { error: unpackError(structuredClone(packError(reply.error))) }
        : structuredClone(reply);
    };
    const close = async (): Promise<void> => [reader, line].forEach((engine) => engine.close());
    return sqliteStore(carry, { path, sync: "full" }, { wake: new Set(), close });
  };
  return onFile(open, clock);
}

/** A SQLite store on a file of its own, behind its thread, on real time; built, because a thread loads JavaScript. */
export async function threadedWorld(): Promise<World> {
  const { createSqliteStore } =
    await importBuilt<typeof import("../../src/store/sqlite/index.ts")>("store/sqlite/index.js");
  const clock = {
    get now() {
      return Date.now();
    },
    set now(_value) {
      throw new Error("This store runs on real time.");
    },
  };
  return onFile((path) => createSqliteStore({ path }), clock);
}

async function onFile(create: (path: string) => Store | Promise<Store>, clock: World["clock"]): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), "redrive-"));
  const path = join(folder, "jobs.db");
  const opened: Store[] = [];
  const open = async (): Promise<Store> => {
    const store = await create(path);
    opened.push(store);
    await store.migrate();
    return store;
  };
  const close = async (): Promise<void> => {
    await Promise.all(opened.map((store) => store.close()));
    rmSync(folder, { recursive: true });
  };
  return { store: await open(), clock, peer: open, close };
}
