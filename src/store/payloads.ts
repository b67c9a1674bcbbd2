// The payloads that a job has had: number 0 is the first one, kept from the first change on; every change adds one, and so
// does a producer that replaces the payload afterwards.
import { createHash } from "node:crypto";
import { checkWhy } from "../core/event-log.ts";
import { checkInteger, checkName, checkPayload, checkText } from "../core/new-job.ts";
import { invalid } from "../core/options.ts";
import type { Value } from "./columns.ts";

/** Another payload for a dead job. */
export interface PayloadChange {
  readonly id: string;
  /** The generation of the death that the caller saw. */
  readonly generation: number;
  /** The hash of the payload that the caller saw, as `payloadHash` makes it. */
  readonly was: string;
  /** JSON text. */
  readonly payload: string;
  readonly actor: string;
  readonly why: string | null;
  /** The redrive run for which it is made; absent for none. */
  readonly redrive?: string;
}

/** The result of a repair; `refused` means not dead, another generation, or another payload by now. */
export type RepairAnswer = "repaired" | "refused" | "missing";

/** Another payload of a job, and what is known of the change. */
export interface NewPayload {
  /** JSON text, byte for byte as it was stored. */
  readonly payload: string;
  /** When the job got it, in epoch milliseconds. */
  readonly at: number;
  /** Who changed it; null where the producer has sent it, and for a redrive run. */
  readonly actor: string | null;
  /** The redrive run that sent it; null for none. */
  readonly redrive: string | null;
  /** The reason that the actor gave; null for none. */
  readonly why: string | null;
}

/** A payload that a job had, or has. */
export interface PayloadVersion extends NewPayload {
  /** 0 for the first payload, 1 for the first change. */
  readonly n: number;
  /** The first generation of the job whose runs get it; null where a program of schema version 2 wrote it. */
  readonly generation: number | null;
}

/** The hash by which a repair names the payload that it replaces: SHA-256 of its bytes, in hexadecimal. */
export function payloadHash(payload: string): string {
  return createHash("sha256").update(payload).digest("hex");
}

/** Throws unless the change may be stored. */
export function checkPayloadChange({ generation, was, payload, actor, why, redrive }: PayloadChange): void {
  checkInteger("generation", generation, 0, Number.MAX_SAFE_INTEGER);
  if (typeof was !== "string" || !/^[0-9a-f]{64}$/.test(was))
    throw invalid("was", "the SHA-256 of the payload seen, in hexadecimal", was, "make it with payloadHash");
  checkPayload(payload);
  checkText("actor", actor);
  if (why !== null) checkWhy(why);
  if (redrive !== undefined) checkName("redrive", redrive);
}

/** The columns of a version in the order of `payloadFromRow`. */
export const VERSION_COLUMNS = "v.n, v.payload, v.at, v.generation, v.actor, v.redrive, v.why";

/** A version from its row. */
export function payloadFromRow(row: readonly Value[]): PayloadVersion {
  const [n, payload, at, generation, actor, redrive, why] = row as [
    number,
    string,
    number,
    number | null,
    string | null,
    string | null,
    string | null,
  ];
  return { n, payload, at, generation, actor, redrive, why };
}
