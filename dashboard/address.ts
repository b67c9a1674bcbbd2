// Where the page is: the path and the query behind the `#`. Every filter, tab and range is in it, so that "look at this" is
// a link, and no server sees it.
import { computed, signal } from "@preact/signals";

/** An address of the page. */
export interface Address {
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

const hash = signal(location.hash);
addEventListener("hashchange", () => (hash.value = location.hash));

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Where the page is now. */
export const address = computed<Address>(() => {
  const [path = "", query = ""] = hash.value.replace(/^#\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
});

/** A link to a page: `to("causes", fingerprint)`. */
export function to(...parts: readonly (string | number)[]): string {
  return `#/${parts.map((part) => encodeURIComponent(part)).join("/")}`;
}

type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** A link to a page with a query; empty values are left out. */
export function toWith(parts: readonly string[], query: Query): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
  return search.size === 0 ? to(...parts) : `${to(...parts)}?${search.toString()}`;
}

/** Goes to a link. */
export function go(link: string): void {
  location.hash = link;
}

/** The present page with other values in its query. */
export function withQuery(change: Query): string {
  const { path, query } = address.value;
  return toWith(path, { ...Object.fromEntries(query), ...change });
}

/** Puts another query into the address without a step in the history. */
export function replaceQuery(change: Query): void {
  history.replaceState(null, "", withQuery(change));
  hash.value = location.hash;
}
