// Tokens in the store, so that all servers of a fleet share them: a name, a role, rights, an expiry. Only the digest of the
// secret is kept; the secret is shown once, when it is made.
import { type Duration, parseDuration } from "../core/duration.ts";
import { RedriveError } from "../core/errors.ts";
import { checkActor, subjectOf } from "../core/event-log.ts";
import { checkOneOf, JOB_BOUNDS } from "../core/new-job.ts";
import { fieldsFrom, invalid, parseOptions } from "../core/options.ts";
import { type ActionOptions, openEventLog } from "../report/event-log.ts";
import type { Cell, Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import { digestOf, newSecret } from "../system/secrets.ts";
import { type Role, ROLES } from "./route.ts";

/** The kind of the cells that hold tokens. */
export const TOKEN_CELLS = "token";
/** The kind of the cells that say when each was used last. */
export const USE_CELLS = "token-use";

/** A token as people see it. */
export interface TokenView {
  /** Its name, which is the actor in the event log. */
  readonly name: string;
  readonly role: Role;
  /** True lets it see payloads. */
  readonly payloads: boolean;
  /** True lets it see who did what. */
  readonly audit: boolean;
  /** Who made it. */
  readonly by: string;
  /** When it was made, in epoch milliseconds by the store's clock. */
  readonly at: number;
  /** When it ends; null for never. */
  readonly expiresAt: number | null;
  /** When it was used last, to the minute; null for never. */
  readonly usedAt: number | null;
}

/** A token with the digest of its secret. */
export interface StoredToken extends TokenView {
  readonly digest: string;
}

/** What a new token may do. */
export interface NewToken {
  readonly role: Role;
  readonly payloads?: boolean;
  readonly audit?: boolean;
  /** How long it is good; default forever. */
  readonly expires?: Duration;
}

/** The tokens of a store. */
export interface Tokens {
  /** Makes a token; the secret is in this answer and nowhere else. Rejects with `conflict` where the name is taken. */
  add(
    name: string,
    token: NewToken,
    because?: ActionOptions,
  ): Promise<{ readonly token: string; readonly view: TokenView }>;
  /** All tokens by name. */
  list(): Promise<TokenView[]>;
  /** Ends a token; false if there was none. Servers learn of it within two seconds. */
  revoke(name: string, because?: ActionOptions): Promise<boolean>;
}

const NAME = /^[\w.@-]{1,64}$/;

/** The tokens of a store, for an operator. */
export function openTokens({
  store,
  log,
  actor,
}: {
  readonly store: Store;
  readonly log: Log;
  readonly actor: string;
}): Tokens {
  const eventLog = openEventLog({ store, log, actor });
  return {
    async add(name, given, because = {}) {
      checkName(name);
      const { role, payloads, audit, expires } = parseOptions(given, ["role", "payloads", "audit", "expires"], "token");
      checkOneOf("role", role as string, ROLES);
      const forMs =
        expires === undefined ? null : parseDuration(expires, "expires", { minMs: 1, maxMs: JOB_BOUNDS.delayMs });
      const { now } = await store.control();
      const secret = `rd_${newSecret()}`;
      const isAdmin = role === "admin";
      const view: TokenView = {
        name,
        role: role as Role,
        payloads: payloads === true || isAdmin,
        audit: audit === true || isAdmin,
        by: actor,
        at: now,
        expiresAt: forMs === null ? null : now + forMs,
        usedAt: null,
      };
      const { usedAt: _, ...kept } = view;
      const value = JSON.stringify({ ...kept, digest: digestOf(secret) });
      const { why } = parseOptions(because, ["why"], "add");
      const details = { role, payloads: view.payloads, audit: view.audit, forMs };
      await eventLog.act({ kind: "token.add", subject: subjectOf("token", name), why, details }, async () => {
        const [isWritten] = await store.setCells([{ kind: TOKEN_CELLS, name, holder: "", version: 0, value }]);
        if (!isWritten)
          throw new RedriveError("conflict", `There is a token ${name}. Revoke it first, or choose another name.`);
      });
      return { token: secret, view };
    },
    async list() {
      return (await readTokens(store)).map(({ digest: _digest, ...view }) => view);
    },
    async revoke(name, because = {}) {
      checkName(name);
      const { why } = parseOptions(because, ["why"], "revoke");
      const { cells } = await store.cells([{ kind: TOKEN_CELLS, name }]);
      if (cells.length === 0) return false;
      await eventLog.act({ kind: "token.revoke", subject: subjectOf("token", name), why }, () =>
        store.setCells([
          { kind: TOKEN_CELLS, name, holder: "", version: null, value: null },
          { kind: USE_CELLS, name, holder: "", version: null, value: null },
        ]),
      );
      return true;
    },
  };
}

function checkName(name: unknown): void {
  checkActor("name", name);
  if (!NAME.test(name as string))
    throw invalid("name", "1 to 64 letters, digits, and . _ @ -", name, "it is the actor in the event log");
}

/** All tokens of a store; a cell that cannot be read is no token. */
export async function readTokens(store: Pick<Store, "cells">): Promise<StoredToken[]> {
  const { cells } = await store.cells([{ kind: TOKEN_CELLS }, { kind: USE_CELLS }]);
  const used = new Map(cells.flatMap(({ kind, name, at }) => (kind === USE_CELLS ? [[name, at] as const] : [])));
  return cells.flatMap((cell) => (cell.kind === TOKEN_CELLS ? tokenFrom(cell, used.get(cell.name) ?? null) : []));
}

function tokenFrom({ name, value }: Cell, usedAt: number | null): StoredToken[] {
  const { role, payloads, audit, by, at, expiresAt, digest } = fieldsFrom(value);
  const known = ROLES.find((each) => each === role);
  if (known === undefined || typeof digest !== "string" || typeof at !== "number") return [];
  const ends = typeof expiresAt === "number" ? expiresAt : null;
  return [
    {
      name,
      role: known,
      payloads: payloads === true,
      audit: audit === true,
      by: typeof by === "string" ? by : "",
      at,
      expiresAt: ends,
      usedAt,
      digest,
    },
  ];
}
