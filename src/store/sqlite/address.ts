// The URL of a SQLite store: `sqlite:PATH`, and what may be said behind the path.
import { invalid } from "../../core/options.ts";

/**
 * When a write is answered: once it is on disk, or once it is written. The second survives the death of every process, but a
 * power loss may take the last writes that were answered.
 */
export type Sync = "full" | "normal";

/** Where the file is, and how safely it is written. */
export interface SqliteAddress {
  readonly path: string;
  readonly sync: Sync;
}

const PREFIX = "sqlite:";

/** Reads a URL that begins with `sqlite:`; null for any other. */
export function readSqliteUrl(url: string): SqliteAddress | null {
  if (!url.startsWith(PREFIX)) return null;
  const [path = "", said] = url.slice(PREFIX.length).split(/\?(?=[^?]*$)/);
  const sync = said === undefined ? "full" : new URLSearchParams(said).get("sync");
  if ((sync !== "full" && sync !== "normal") || (said !== undefined && said !== `sync=${sync}`))
    throw invalid("store", "?sync=full or ?sync=normal behind the path", `?${said}`, "write one of them, or nothing");
  return { path, sync };
}

/** The URL of a store; the default is not named. */
export function sqliteUrl({ path, sync }: SqliteAddress): string {
  return `${PREFIX}${path}${sync === "full" ? "" : `?sync=${sync}`}`;
}
