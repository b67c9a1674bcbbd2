// One route as data: how it is called, who may call it, what goes in and what comes out. The router, the validation, the
// OpenAPI document, the table of rights, the reference page and the typed client are all made from these objects.
import type * as v from "valibot";

/** Who may call: the roles of a token, from the least to the most. A producer is beside them: it only enqueues. */
export const ROLES = ["producer", "viewer", "operator", "admin"] as const;
/** One of `ROLES`. */
export type Role = (typeof ROLES)[number];

/** What a route needs: `anyone` needs no token, `any` a token of any role. */
export type Needed = "anyone" | "any" | Role;

/** Which roles satisfy what a route needs. */
export const ALLOWED: Readonly<Record<Needed, readonly Role[]>> = {
  anyone: ROLES,
  any: ROLES,
  producer: ["producer", "operator", "admin"],
  viewer: ["viewer", "operator", "admin"],
  operator: ["operator", "admin"],
  admin: ["admin"],
};

/** The methods in use. */
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The fields of an object by name. */
export type Entries = Readonly<Record<string, v.GenericSchema>>;

/** What an answer is: a document of a schema, or a text of a media type. */
export type AnswerShape =
  | v.GenericSchema
  | {
      readonly text: string;
      /** Further media types in which it answers. */
      readonly also?: readonly string[];
      readonly says: string;
    };

/** One route. */
export interface Route {
  /** `jobs.cancel`: the resource and what is done with it; also the name in the client. */
  readonly name: string;
  readonly method: Method;
  /** The path below the prefix of the API, with `{id}` for parameters. */
  readonly path: string;
  readonly role: Needed;
  /** True where the right to see payloads is needed besides. */
  readonly payloads?: boolean;
  /** True where the route changes nothing although it is not a GET. */
  readonly asks?: boolean;
  readonly params: Entries;
  readonly query: Entries;
  /** The body; null for none. `text` is a body that is kept byte for byte. */
  readonly body: v.GenericSchema | "payload" | null;
  /** Further media types of the body. */
  readonly accepts?: readonly string[];
  readonly answer: AnswerShape;
  /** The status of a call that did what it says; default 200. */
  readonly status?: 200 | 201 | 204;
  /** One sentence for the reference. */
  readonly says: string;
}

/** Keeps the exact type of a route, for the client. */
export function route<const R extends Route>(given: R): R {
  return given;
}

/** True where the roles of the route include this one. */
export function mayCall({ role }: Pick<Route, "role">, own: Role): boolean {
  return ALLOWED[role].includes(own);
}

/** True for an answer that is text. */
export function isText(answer: AnswerShape): answer is Extract<AnswerShape, { readonly text: string }> {
  return "text" in answer;
}

/** True for a route that changes the store. */
export function isWrite({ method, asks = false }: Pick<Route, "method" | "asks">): boolean {
  return method !== "GET" && !asks;
}
