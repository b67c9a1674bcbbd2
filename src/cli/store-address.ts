// Store URLs as people give them: checked before anything is opened, relative to where they were written, and never shown
// with a password.
import { resolve } from "node:path";
import { invalid } from "../core/options.ts";
import { masked } from "./safe-text.ts";

/** Where the jobs live. */
export interface StoreAddress {
  /** The URL with an absolute path. */
  readonly url: string;
  /** The database file. */
  readonly path: string;
}

/** The default, in the working directory. */
export const DEFAULT_STORE = "sqlite:./redrive.db";

const REMEDY = `for example ${DEFAULT_STORE}`;

/** Checks a store URL; `folder` is where a relative path begins. */
export function storeAddress(url: unknown, folder: string): StoreAddress {
  if (typeof url !== "string") throw invalid("store", "sqlite:PATH", url, REMEDY);
  const path = url.startsWith("sqlite:") ? url.slice("sqlite:".length) : "";
  // A store in memory ends with the process: what one command writes, no other would find.
  if (url === "memory:" || path === ":memory:")
    throw invalid("store", "sqlite:PATH", url, "a store in memory is gone when the command ends; name a file");
  if (path === "" || path.includes("\0")) throw invalid("store", "sqlite:PATH", masked(url), REMEDY);
  const absolute = resolve(folder, path);
  return { url: `sqlite:${absolute}`, path: absolute };
}
