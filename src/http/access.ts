// Who calls a server of `redrive up`: bearer tokens of the environment and of the store, and browsers that were signed in
// by a link with a code. Sessions and codes are cells of the store, as digests, so that several servers share them and a
// restart signs no one out.
import { fieldsFrom } from "../core/options.ts";
import type { Store } from "../store/store.ts";
import { digestOf, isSameDigest, newSecret } from "../system/secrets.ts";
import type { System } from "../system/system.ts";
import type { Access, Identity } from "./identity.ts";
import { type Role, ROLES } from "./route.ts";
import { readTokens, type StoredToken, USE_CELLS } from "./tokens.ts";

/** How a server lets people in. */
export interface AccessOptions {
  readonly store: Store;
  readonly system: System;
  /** The admin's bearer token; null for none. */
  readonly adminToken: string | null;
  /** The port, which is part of the cookie's name: cookies do not know ports. */
  readonly port: () => number;
  /** True sets the cookie for TLS only. */
  readonly isSecure: boolean;
}

const SESSION_CELLS = "session";
const CODE_CELLS = "sign-in";
const SESSION_MS = 12 * 3_600_000;
const CODE_MS = 300_000;
/** How long tokens that were read count as known, and how often a use is written. */
const KNOWN_MS = 1_000;
const USE_MS = 60_000;
/** Owned cells are deleted a day after they were written last. */
const HOLDER = "http";

const ADMIN: Identity = { actor: "admin", role: "admin" };

/** Who a secret stands for, and the digest of the token; null for a code. */
interface Found {
  readonly identity: Identity;
  readonly digest: string | null;
}

/** Makes the code of a sign-in link: good for five minutes and one sign-in. */
export async function newSignInCode(store: Pick<Store, "control" | "setCells">): Promise<string> {
  const { now } = await store.control();
  const code = newSecret();
  const value = JSON.stringify({ expiresAt: now + CODE_MS });
  await store.setCells([{ kind: CODE_CELLS, name: digestOf(code), holder: HOLDER, version: 0, value }]);
  return code;
}

/** The access of a server. */
export function openAccess({ store, system, adminToken, port, isSecure }: AccessOptions): Access {
  const admin = adminToken === null ? null : digestOf(adminToken);
  const tokens = tokenReader(store, system);
  const use = useWriter(store, system);
  const cookieName = (): string => `redrive_${port()}`;
  const cookie = (value: string, seconds: number): string =>
    `${cookieName()}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}${isSecure ? "; Secure" : ""}`;
  const names = new WeakMap<Identity, string>();
  const byToken = async (secret: string): Promise<Found | null> => {
    const digest = digestOf(secret);
    if (admin !== null && isSameDigest(digest, admin)) return { identity: ADMIN, digest };
    const found = (await tokens()).find((token) => token.digest === digest);
    if (!found || isOver(found.expiresAt, system.now())) return null;
    const identity = identityOf(found);
    names.set(identity, found.name);
    return { identity, digest };
  };
  /** A session that a token has opened ends with the token. */
  const isGood = async (digest: string): Promise<boolean> =>
    digest === admin || (await tokens()).some((token) => token.digest === digest);
  return {
    async identify(request) {
      const header = request.headers.get("authorization");
      if (header !== null) {
        const [, secret] = /^Bearer +(\S{1,255})$/i.exec(header) ?? [];
        return secret === undefined ? null : ((await byToken(secret))?.identity ?? null);
      }
      const value = cookieOf(request, cookieName());
      return value === null ? null : bySession(store, system, value, isGood);
    },
    used(identity) {
      const name = names.get(identity);
      if (name !== undefined) use(name);
    },
    async signIn(secret) {
      const found = "token" in secret ? await byToken(secret.token) : await byCode(store, secret.code);
      if (found === null) return null;
      const { identity, digest } = found;
      const value = newSecret();
      const { now } = await store.control();
      const ends = Math.min(now + SESSION_MS, identity.expiresAt ?? Number.POSITIVE_INFINITY);
      const kept = JSON.stringify({ ...identity, expiresAt: ends, token: digest });
      await store.setCells([{ kind: SESSION_CELLS, name: digestOf(value), holder: HOLDER, version: 0, value: kept }]);
      return { identity: { ...identity, expiresAt: ends }, cookie: cookie(value, Math.floor((ends - now) / 1_000)) };
    },
    async signOut(request) {
      const value = cookieOf(request, cookieName());
      if (value !== null)
        await store.setCells([
          { kind: SESSION_CELLS, name: digestOf(value), holder: HOLDER, version: null, value: null },
        ]);
      return cookie("", 0);
    },
  };
}

function identityOf({ name, role, payloads, audit, expiresAt }: StoredToken): Identity {
  return { actor: name, role, payloads, audit, expiresAt };
}

function isOver(expiresAt: number | null, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

/** Swaps a code for the right of the admin, once: the cell is deleted only by the caller that saw it. */
async function byCode(store: Store, code: string): Promise<Found | null> {
  const name = digestOf(code);
  const { cells, now } = await store.cells([{ kind: CODE_CELLS, name }]);
  const [cell] = cells;
  if (!cell) return null;
  const [isTaken] = await store.setCells([
    { kind: CODE_CELLS, name, holder: HOLDER, version: cell.version, value: null },
  ]);
  const { expiresAt } = fieldsFrom(cell.value);
  if (isTaken !== true || typeof expiresAt !== "number" || expiresAt <= now) return null;
  return { identity: ADMIN, digest: null };
}

/** The person whose browser has this cookie. Where it was signed in by a token, the token must still be there. */
async function bySession(
  store: Pick<Store, "cells">,
  system: System,
  value: string,
  isGood: (digest: string) => Promise<boolean>,
): Promise<Identity | null> {
  const { cells } = await store.cells([{ kind: SESSION_CELLS, name: digestOf(value) }]);
  const { actor, role, payloads, audit, expiresAt, token } = fieldsFrom(cells[0]?.value ?? "");
  const known: Role | undefined = ROLES.find((each) => each === role);
  if (known === undefined || typeof actor !== "string" || typeof expiresAt !== "number") return null;
  if (isOver(expiresAt, system.now())) return null;
  if (typeof token === "string" && !(await isGood(token))) return null;
  const rights = known === "admin" ? {} : { payloads: payloads === true, audit: audit === true };
  return { actor, role: known, expiresAt, ...rights };
}

function cookieOf(request: Request, name: string): string | null {
  for (const part of (request.headers.get("cookie") ?? "").split(";")) {
    const at = part.indexOf("=");
    if (at > 0 && part.slice(0, at).trim() === name)
      return (
        part
          .slice(at + 1)
          .trim()
          .slice(0, 255) || null
      );
  }
  return null;
}

/** Reads the tokens once a second at most, whatever is asked. */
function tokenReader(store: Store, { monotonic }: System): () => Promise<readonly StoredToken[]> {
  let last: { readonly at: number; readonly read: Promise<readonly StoredToken[]> } | null = null;
  return () => {
    const now = monotonic();
    if (last && now - last.at < KNOWN_MS) return last.read;
    const read = readTokens(store);
    last = { at: now, read };
    // A failure is not kept: the next request tries again.
    read.catch(() => (last = null));
    return read;
  };
}

/** Notes when a token was used, once a minute; a note that fails is left out. */
function useWriter(store: Store, { monotonic }: System): (name: string) => void {
  const noted = new Map<string, number>();
  return (name) => {
    const now = monotonic();
    if (now - (noted.get(name) ?? Number.NEGATIVE_INFINITY) < USE_MS) return;
    noted.set(name, now);
    void store.setCells([{ kind: USE_CELLS, name, holder: "", version: null, value: "{}" }]).catch(() => undefined);
  };
}
