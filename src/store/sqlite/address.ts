// The URL of a SQLite store: `sqlite:PATH`, with an optional parameter after the path.
import { resolve } from "node:path";
import { invalid } from "../../core/options.ts";
import type { StoreAddress } from "../inspection.ts";
import type { StoreDescription } from "../store.ts";

/**
 * When a write is answered: once it is on disk, or once it is written. The second survives the death of every process,
 * but a power loss may lose the last answered writes.
 */
export type Sync = "full" | "normal";

/** The path of the file, and how safely it is written. */
export interface SqliteAddress {
  readonly path: string;
  readonly sync: Sync;
}

const PREFIX = "sqlite:";
/** The parameter begins here; a question mark before it belongs to the path. */
const SAID = /\?(?=sync=|[^?]*$)/;
/** A drive of Windows has one letter only. */
const OTHER_URL = /^[a-z][a-z0-9+.-]+:\/\//i;
const REMEDY = "write one of them, or nothing; where the ? belongs to the file's name, write ?sync=full behind it";

/** Reads a URL that begins with `sqlite:`; null for any other. */
export function readSqliteUrl(url: string): SqliteAddress | null {
  if (!url.startsWith(PREFIX)) return null;
  const rest = url.slice(PREFIX.length);
  const [other] = OTHER_URL.exec(rest) ?? [];
  // What follows may be a password.
  if (other !== undefined)
    throw invalid("store", "sqlite: and the path of a file", `${PREFIX}${other}…`, "leave out sqlite:, or name a file");
  const at = rest.search(SAID);
  if (at < 0) return { path: rest, sync: "full" };
  const [path, said] = [rest.slice(0, at), rest.slice(at)];
  if (said === "?sync=full") return { path, sync: "full" };
  if (said === "?sync=normal") return { path, sync: "normal" };
  throw invalid("store", "?sync=full or ?sync=normal after the path", said, REMEDY);
}

/** The URL of a store; the default is named only where a question mark in the path would be taken for a parameter. */
export function sqliteUrl({ path, sync }: SqliteAddress): string {
  return `${PREFIX}${path}${sync === "full" && !path.includes("?") ? "" : `?sync=${sync}`}`;
}

const IN_MEMORY = ":memory:";
const LESS_SAFE =
  "sync=normal: writes are answered before they are on disk; a power loss may lose the last ones, the death of a process loses none";

/** The description of a store on this file. */
export function describeSqlite({ path, sync }: SqliteAddress): StoreDescription {
  const file = path === IN_MEMORY ? null : resolve(path);
  return { name: "sqlite", shown: file ?? path, file, notice: sync === "normal" ? LESS_SAFE : null };
}

/** The address of a URL, with an absolute path; a relative one begins at `folder`. Null for a URL that names no file. */
export function sqliteStoreAddress(url: string, folder: string): StoreAddress | null {
  const given = readSqliteUrl(url);
  if (given === null || given.path === "" || given.path.includes("\0")) return null;
  const address = { path: resolve(folder, given.path), sync: given.sync };
  return {
    ...describeSqlite(address),
    url: sqliteUrl(address),
    inspect: async () => (await import("./inspection.ts")).inspectSqlite(address.path),
  };
}
