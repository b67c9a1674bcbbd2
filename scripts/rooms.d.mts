// Types of rooms.mjs for tests.

/** One thing a file reaches. */
export interface Reach {
  /** The specifier as written. */
  readonly name: string;
  readonly kind: "value" | "type" | "url";
  readonly line: number;
}

/** Every room, lowest first, with what it holds. */
export const ROOMS: readonly (readonly [name: string, says: string])[];
/** The room of a path below src, and the store where it belongs to one; null for a room that is not listed. */
export function roomOf(path: string): { readonly room: string; readonly store: string | null } | null;
/** Why a file must not use another; null if it may. */
export function whyNot(path: string, target: string): string | null;
/** What a file reaches. */
export function reachesOf(path: string, text: string): Reach[];
/** The file that a relative specifier of a file means. */
export function targetOf(path: string, reach: Pick<Reach, "name" | "kind">): string;
/** Why an example must not use a file; null if it may. */
export function whyNotInExample(path: string, target: string): string | null;
/** The graph of rooms as a Markdown table. */
export function roomsTable(files: readonly { readonly path: string; readonly text: string }[]): string;
