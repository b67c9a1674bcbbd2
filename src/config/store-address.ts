// Store URLs from users: checked before anything is opened, relative to where they were written, and never shown with a
// password.
import { invalid } from "../core/options.ts";
import { masked } from "../core/safe-text.ts";
import { DEFAULT_STORE } from "../core/store-urls.ts";
import type { StoreAddress } from "../store/inspection.ts";
import { postgresStoreAddress } from "../store/postgres/address.ts";
import { sqliteStoreAddress } from "../store/sqlite/address.ts";

const EXPECTED = "sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE";
const REMEDY = `for example ${DEFAULT_STORE}`;
/** One reader for each kind of store that survives the process; each returns null for the URLs of the others. */
const READERS: readonly ((url: string, folder: string) => StoreAddress | null)[] = [
  postgresStoreAddress,
  sqliteStoreAddress,
];

/** Checks a store URL; `folder` is where a relative path begins. */
export function storeAddress(url: unknown, folder: string): StoreAddress {
  if (typeof url !== "string") throw invalid("store", EXPECTED, url, REMEDY);
  // A store in memory ends with the process: no other command would find its jobs.
  if (/^(memory:|sqlite::memory:(\?.*)?)$/.test(url))
    throw invalid("store", EXPECTED, url, "a store in memory is gone when the command ends; name a file");
  for (const read of READERS) {
    const address = read(url, folder);
    if (address !== null) return address;
  }
  throw invalid("store", EXPECTED, masked(url), REMEDY);
}
