// Who calls: what an application, or the tokens of `redrive up`, say about a request.
import { checkActor } from "../core/event-log.ts";
import { isRedriveError } from "../core/errors.ts";
import { HttpError } from "./http-error.ts";
import { type Role, ROLES } from "./route.ts";

/** The person or program that calls. */
export interface Identity {
  /** The name in the event log. */
  readonly actor: string;
  /** What it may do. */
  readonly role: Role;
  /** True lets it see payloads, progress and results; default true for admin, false for the others. */
  readonly payloads?: boolean;
  /** True lets it see who did what in the event log; default true for admin, false for the others. */
  readonly audit?: boolean;
  /** When its right ends, in epoch milliseconds; default never. */
  readonly expiresAt?: number | null;
}

/** An identity with its rights decided. */
export interface Caller {
  readonly actor: string;
  readonly role: Role;
  readonly payloads: boolean;
  readonly audit: boolean;
  readonly expiresAt: number | null;
}

/** What is known of a request besides the request. */
export interface Peer {
  /** The address of the caller; null where it is not known. */
  readonly address: string | null;
}

/** Says who calls; null where the request has no right to anything. */
export type Auth = (request: Request, peer: Peer) => Identity | null | Promise<Identity | null>;

/** A way to sign in, besides saying who calls. */
export interface Access {
  readonly identify: Auth;
  /** Notes that who was identified so has used a right that it has. */
  used(identity: Identity): void;
  /** Swaps a code or a token for a cookie; null where it is wrong. */
  signIn(
    secret: { readonly code: string } | { readonly token: string },
    peer: Peer,
  ): Promise<{ readonly identity: Identity; readonly cookie: string } | null>;
  /** Ends the session of the request; answers the cookie that removes it. */
  signOut(request: Request): Promise<string>;
}

/** The identity with its rights, checked: an application may have made a mistake. */
export function callerFrom(identity: Identity | null): Caller | null {
  if (identity === null || identity === undefined) return null;
  const { actor, role, payloads = role === "admin", audit = role === "admin", expiresAt = null } = identity;
  try {
    checkActor("auth.actor", actor);
  } catch (error) {
    if (isRedriveError(error)) throw new HttpError("config_refused", error.message);
    throw error;
  }
  if (!ROLES.includes(role))
    throw new HttpError("config_refused", `auth.role: expected ${ROLES.join(", ")}; got another; correct auth`);
  return { actor, role, payloads: payloads === true, audit: audit === true, expiresAt };
}
