// Finds the route of a method and a path.
import { HttpError } from "./http-error.ts";
import type { Route } from "./route.ts";
import { PREFIX } from "./routes.ts";

/** A route with the parameters of the path. */
export interface Match {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/** Finds routes by method and path; null where there is none. */
export type Find = (method: string, path: string) => Match | null;

/** The parameters of a path without any. */
export const NO_PARAMS: Readonly<Record<string, string>> = {};

/** A router of these routes: paths without parameters by their text, the others by their parts. */
export function openRouter(routes: readonly Route[]): Find {
  const plain = new Map<string, Match>();
  const others = new Map<string, { readonly route: Route; readonly parts: readonly string[] }[]>();
  for (const route of routes) {
    const path = `${PREFIX}${route.path}`;
    if (!path.includes("{")) plain.set(`${route.method} ${path}`, { route, params: NO_PARAMS });
    const parts = path.split("/");
    const alike = `${route.method} ${parts.length}`;
    others.set(alike, [...(others.get(alike) ?? []), { route, parts }]);
  }
  return (method, path) => {
    const found = plain.get(`${method} ${path}`);
    if (found) return found;
    const given = path.split("/");
    for (const { route, parts } of others.get(`${method} ${given.length}`) ?? []) {
      if (!parts.every((part, at) => part === given[at] || (part.startsWith("{") && given[at] !== ""))) continue;
      const params: Record<string, string> = {};
      parts.forEach((part, at) => {
        if (part.startsWith("{")) params[part.slice(1, -1)] = decoded(given[at] ?? "");
      });
      return { route, params };
    }
    return null;
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new HttpError("invalid_argument", "path: expected percent-encoded UTF-8; got other bytes; encode each part");
  }
}
