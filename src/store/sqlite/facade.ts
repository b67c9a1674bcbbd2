// The SQLite store as callers see it, over any carrier of requests: packs arguments and unpacks answers. The same for
// the store thread and for the inline engine.
import { RedriveError } from "../../core/errors.ts";
import type { NewJob } from "../../core/new-job.ts";
import { type ControlNews, rememberControl } from "../control.ts";
import type { ClaimRequest, EnqueueAnswer, SettleRequest, Store } from "../store.ts";
import type { Verb } from "../verb-facts.ts";
import { type StoreLife, storeFrom } from "../verbs.ts";
import type { Value } from "../columns.ts";
import { describeSqlite, type SqliteAddress } from "./address.ts";
import type { Reply, Request } from "./engine.ts";
import { attemptFromRow, deadLetterFromRow, expiredFromRow, jobFromRow, overdueFromRow } from "../rows.ts";
import { type ClaimWire, packNewJobs, packSettle, type RowPage, unpackClaim } from "./wire.ts";

/** Carries out one request, in this thread or in another. */
export type Carrier = (request: Request) => Promise<Reply>;

/** Makes the store. */
export function sqliteStore(carry: Carrier, address: SqliteAddress, life: StoreLife): Store {
  const call = async (verb: Verb, args: readonly unknown[]): Promise<unknown> => {
    const { pack, unpack } = WIRE[verb] ?? {};
    const reply = await carry({ verb, args: pack ? pack(...(args as never[])) : args });
    if ("error" in reply) throw reply.error;
    return unpack ? unpack(reply.value as never, ...(args as never[])) : reply.value;
  };
  const control = rememberControl(async (...known) => (await call("control", known)) as ControlNews);
  const carryOut = (verb: Verb, args: readonly unknown[]): Promise<unknown> =>
    verb === "control" ? control() : call(verb, args);
  return storeFrom(describeSqlite(address), carryOut, life);
}

interface Wire {
  readonly pack?: (...args: never[]) => readonly unknown[];
  readonly unpack?: (value: never, ...args: never[]) => unknown;
}

const fromPage = ({ rows, ...page }: RowPage, read: (row: readonly Value[]) => unknown): unknown => ({
  items: rows.map(read),
  ...page,
});

const created = ({ id }: NewJob): EnqueueAnswer => ({ kind: "created", id });

/** How the arguments and the answer of a verb are packed, where they are. */
const WIRE: { readonly [K in Verb]?: Wire } = {
  enqueue: {
    pack: (jobs: readonly NewJob[]) => [packNewJobs(jobs)],
    unpack: (met: EnqueueAnswer[] | null, jobs: readonly NewJob[]) => met ?? jobs.map(created),
  },
  settle: { pack: (request: SettleRequest) => [packSettle(request)] },
  get: { unpack: (rows: (Value[] | null)[]) => rows.map((row) => row && jobFromRow(row)) },
  holders: { unpack: (rows: Value[][]) => rows.map(jobFromRow) },
  list: { unpack: (page: RowPage) => fromPage(page, jobFromRow) },
  claim: {
    unpack: (wire: ClaimWire, request: ClaimRequest) => ({
      jobs: unpackClaim(request, wire),
      now: wire.now,
      refused: wire.refused,
    }),
  },
  expired: { unpack: (rows: Value[][]) => rows.map(expiredFromRow) },
  overdue: { unpack: (rows: Value[][]) => rows.map(overdueFromRow) },
  deadLetters: { unpack: (page: RowPage) => fromPage(page, deadLetterFromRow) },
  history: { unpack: (rows: Value[][]) => rows.map(attemptFromRow) },
};

/** An error in plain form, because classes cannot be sent between threads. */
export interface ErrorWire {
  readonly code: RedriveError["code"];
  readonly message: string;
  readonly details: Record<string, unknown>;
  readonly cause: string | null;
}

/** Turns an error into its plain form. */
export function packError(error: RedriveError): ErrorWire {
  const cause = error.cause instanceof Error ? `${error.cause.name}: ${error.cause.message}` : null;
  return { code: error.code, message: error.message, details: { ...error.details }, cause };
}

/** Restores an error from its plain form. */
export function unpackError({ code, message, details, cause }: ErrorWire): RedriveError {
  return new RedriveError(code, message, { details, cause: cause ?? undefined });
}
