// The URL of a SQLite store: `sqlite:PATH`, with an optional parameter after the path.
import { invalid } from "../../core/options.ts";

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
const REMEDY = "write one of them, or nothing; where the ? belongs to the file's name, write ?sync=full behind it";

/** Reads a URL that begins with `sqlite:`; null for any other. */
export function readSqliteUrl(url: string): SqliteAddress | null {
  if (!url.startsWith(PREFIX)) return null;
  const rest = url.slice(PREFIX.length);
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
