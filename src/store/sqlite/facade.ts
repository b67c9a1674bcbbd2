// The SQLite store as callers see it, over anything that carries out requests: packs what goes in, unpacks what comes
// back. The same for the store thread and for the inline engine.
import { RedriveError } from "../../core/errors.ts";
import type { NewJob } from "../../core/new-job.ts";
import { type ControlNews, rememberControl } from "../control.ts";
import type { ClaimRequest, SettleRequest, Store } from "../store.ts";
import { type StoreLife, storeFrom, type Verb } from "../verbs.ts";
import type { Value } from "../rows.ts";
import type { Reply, Request } from "./engine.ts";
import type { RowPage } from "./jobs.ts";
import { attemptFromRow, deadLetterFromRow, expiredFromRow, jobFromRow, overdueFromRow } from "../rows.ts";
import { type ClaimWire, packNewJobs, packSettle, unpackClaim } from "./wire.ts";

/** Carries out one request, now or in another thread. */
export type Carrier = (request: Request) => Promise<Reply>;

/** Makes the store. */
export function sqliteStore(carry: Carrier, life: StoreLife): Store {
  const call = async (verb: Verb, args: readonly unknown[]): Promise<unknown> => {
    const reply = await carry({ verb, args: pack(verb, args) });
    if ("error" in reply) throw reply.error;
    return unpack(verb, args, reply.value);
  };
  const control = rememberControl(async (...known) => (await call("control", known)) as ControlNews);
  return storeFrom("sqlite", (verb, args) => (verb === "control" ? control() : call(verb, args)), life);
}

function pack(verb: Verb, args: readonly unknown[]): readonly unknown[] {
  if (verb === "enqueue") return [packNewJobs(args[0] as readonly NewJob[])];
  if (verb === "settle") return [packSettle(args[0] as SettleRequest)];
  return args;
}

function unpack(verb: Verb, args: readonly unknown[], value: unknown): unknown {
  switch (verb) {
    case "get":
      return (value as (Value[] | null)[]).map((row) => row && jobFromRow(row));
    case "holders":
      return (value as Value[][]).map(jobFromRow);
    case "list":
      return { items: (value as RowPage).rows.map(jobFromRow), next: (value as RowPage).next };
    case "claim": {
      const wire = value as ClaimWire;
      return { jobs: unpackClaim(args[0] as ClaimRequest, wire), now: wire.now, refused: wire.refused };
    }
    case "expired":
      return (value as Value[][]).map(expiredFromRow);
    case "overdue":
      return (value as Value[][]).map(overdueFromRow);
    case "deadLetters":
      return { items: (value as RowPage).rows.map(deadLetterFromRow), next: (value as RowPage).next };
    case "history":
      return (value as Value[][]).map(attemptFromRow);
    default:
      return value;
  }
}

/** An error on its way between threads; classes do not survive the journey. */
export interface ErrorWire {
  readonly code: RedriveError["code"];
  readonly message: string;
  readonly details: Record<string, unknown>;
  readonly cause: string | null;
}

/** Takes an error apart for the journey. */
export function packError(error: RedriveError): ErrorWire {
  const cause = error.cause instanceof Error ? `${error.cause.name}: ${error.cause.message}` : null;
  return { code: error.code, message: error.message, details: { ...error.details }, cause };
}

/** Puts it together again. */
export function unpackError({ code, message, details, cause }: ErrorWire): RedriveError {
  return new RedriveError(code, message, { details, cause: cause ?? undefined });
}
