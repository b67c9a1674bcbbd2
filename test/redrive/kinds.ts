// The library as users open it, on each of its stores: memory, and a SQLite file behind its thread, which needs the
// compiled library. Every test gets its own, closed with the test.
import { onTestFinished } from "vitest";
import * as source from "../../src/index.ts";
import type { Redrive, RedriveOptions, RedriveWorkerOptions } from "../../src/index.ts";
import type { Store } from "../../src/store/store.ts";
import { importBuilt } from "../support/built.ts";
import { testPath } from "../support/database-file.ts";

/** The stores the public API is tested on. */
export const KINDS = ["memory", "sqlite"] as const;
/** One of `KINDS`. */
export type Kind = (typeof KINDS)[number];

type Library = Pick<typeof source, "createRedrive">;

/** The library for a store. */
export function libraryFor(kind: Kind): Promise<Library> {
  return kind === "memory" ? Promise.resolve(source) : importBuilt<Library>("index.js");
}

/** Opens a Redrive of its own for a test; it says nothing unless told otherwise. */
export async function openRedrive(kind: Kind, options: Omit<RedriveOptions, "store"> = {}): Promise<Redrive> {
  const { createRedrive } = await libraryFor(kind);
  const store = kind === "memory" ? "memory:" : `sqlite:${testPath()}`;
  const redrive = await createRedrive({ store, log: "silent", ...options });
  onTestFinished(() => redrive.close());
  return redrive;
}

/** Opens a second Redrive beside the first, on its store. */
export async function beside(first: Redrive, kind: Kind, options: Omit<RedriveOptions, "store">): Promise<Redrive> {
  const { createRedrive } = await libraryFor(kind);
  const redrive = await createRedrive({ store: first.store as Store, log: "silent", ...options });
  onTestFinished(() => redrive.close());
  return redrive;
}

/** Works until nothing is left; nothing that falls due later is waited for. */
export async function drain(redrive: Redrive, options: RedriveWorkerOptions = {}): ReturnType<typeof drained> {
  return drained(redrive, options);
}

function drained(redrive: Redrive, options: RedriveWorkerOptions) {
  return redrive.worker({ poll: 20, ...options }).drain({ grace: 0 });
}

/** The code of the error that a call rejects with, and `"thrown"` in front of it if it does not even return. */
export async function codeOf(call: () => Promise<unknown>): Promise<string> {
  let promise: Promise<unknown>;
  try {
    promise = call();
  } catch (error) {
    return `thrown ${(error as { code?: string }).code ?? String(error)}`;
  }
  return promise.then(
    () => "nothing",
    (error: Error & { readonly code?: string }) => error.code ?? String(error),
  );
}
