// Store URLs from users: checked before anything is opened, relative to where they were written, and never shown with a
// password.
import { resolve } from "node:path";
import { invalid } from "../core/options.ts";
import { isPostgresUrl, readPostgresAddress } from "../store/postgres/address.ts";
import { readSqliteUrl, sqliteUrl } from "../store/sqlite/address.ts";
import { masked } from "../core/safe-text.ts";

/** The address of a store. */
export interface StoreAddress {
  /** The URL; that of a file with an absolute path. */
  readonly url: string;
  /** The database file; null for a server. */
  readonly path: string | null;
  /** For people: the file, or the server without a password. */
  readonly shown: string;
}

/** The default, in the working directory. */
export const DEFAULT_STORE = "sqlite:./redrive.db";

const EXPECTED = "sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE";
const REMEDY = `for example ${DEFAULT_STORE}`;

/** Checks a store URL; `folder` is where a relative path begins. */
export function storeAddress(url: unknown, folder: string): StoreAddress {
  if (typeof url !== "string") throw invalid("store", EXPECTED, url, REMEDY);
  if (isPostgresUrl(url)) {
    const { shown, schema } = readPostgresAddress({ url });
    return { url, path: null, shown: `${shown} (schema ${schema})` };
  }
  const { path, sync } = readSqliteUrl(url) ?? { path: "", sync: "full" };
  // A store in memory ends with the process: no other command would find its jobs.
  if (url === "memory:" || path === ":memory:")
    throw invalid("store", EXPECTED, url, "a store in memory is gone when the command ends; name a file");
  if (path === "" || path.includes("\0")) throw invalid("store", EXPECTED, masked(url), REMEDY);
  const absolute = resolve(folder, path);
  return { url: sqliteUrl({ path: absolute, sync }), path: absolute, shown: absolute };
}
