// Dead jobs for tests of repairs: payments without a currency, on every store.
import { inject, onTestFinished } from "vitest";
import { createRedrive, defineJob, PermanentError, type Redrive } from "../../src/index.ts";
import { beside as besideIt, drain, type Kind as EmbeddedKind, KINDS, openRedrive } from "../redrive/kinds.ts";
import { storeBeside } from "../support/postgres-world.ts";

/** Every store. */
export const STORES = [...KINDS, "postgres"] as const;

/** Where it is tried. */
export type Kind = EmbeddedKind | "postgres";
type Options = Parameters<typeof openRedrive>[1] & object;

/** A Redrive on such a store; closed with the test. */
export async function openOn(kind: Kind, options: Options): Promise<Redrive> {
  if (kind !== "postgres") return openRedrive(kind, options);
  const { store } = await storeBeside(inject("postgres18"));
  const redrive = await createRedrive({ store, log: "silent", ...options });
  onTestFinished(() => redrive.close());
  return redrive;
}

/** A second one on the same store. */
export const beside = (first: Redrive, kind: Kind, options: Options): Promise<Redrive> =>
  besideIt(first, kind === "postgres" ? "memory" : kind, options);

let cured = false;
/** Mends the handler, or breaks it again. */
export const cure = (isMended = true): void => {
  cured = isMended;
};
/** What runs have got since then. */
export const seen: unknown[] = [];

/** A schema as zod would make it: an amount in cents, and a currency once the bug is known. */
const amounts = {
  "~standard": {
    version: 1 as const,
    vendor: "test",
    validate(value: unknown) {
      const { cents } = value as { cents?: unknown };
      if (typeof cents === "number") return { value: value as { cents: number } };
      return { issues: [{ message: `expected a number, got ${typeof cents}`, path: ["cents"] }] };
    },
  },
};
/** A job that dies until it is mended. */
export const pay = defineJob("pay", {
  input: amounts,
  run(input) {
    if (!cured) throw new PermanentError("no currency");
    seen.push(input);
  },
});
/** A job without a schema that always dies. */
export const mail = defineJob("mail", {
  run(): never {
    throw new PermanentError("no such mailbox");
  },
});

/** A Redrive with a dead job for each payload. */
export async function withDead(kind: Kind, payloads: readonly string[]): Promise<{ redrive: Redrive; ids: string[] }> {
  cured = false;
  seen.length = 0;
  const redrive = await openOn(kind, { jobs: [pay, mail], actor: "ada" });
  const ids: string[] = [];
  for (const payload of payloads) ids.push((await redrive.enqueueText(pay, payload)).id);
  await drain(redrive);
  return { redrive, ids };
}

/** Bytes that a parser would not keep. */
export const ODD = ' {"cents" : 1, "id":9007199254740993, "s":"\\ud800", "a":1,"a":2}';

/** The payload that the job has now. */
export async function payloadOf(redrive: Redrive, id: string): Promise<string | undefined> {
  return (await redrive.store.get([id]))[0]?.payload;
}

/** The kinds of events about the repair, oldest first, with their steps. */
export async function eventsOf(redrive: Redrive, kind: string): Promise<unknown[]> {
  const { items } = await redrive.events({ kind, oldest: true });
  return items.map(({ actor, why, subject, value }) => [actor, why, subject, JSON.parse(value).step]);
}
