// Loads the package pg. In a file of its own, because a command reads the address of a store without connecting to one.
import { createRequire } from "node:module";
import type pg from "pg";
import { RedriveError } from "../../core/errors.ts";

const require = createRequire(import.meta.url);

/** Loads the driver, which the user installs. */
export function loadPg(): typeof pg {
  try {
    return require("pg") as typeof pg;
  } catch (cause) {
    throw new RedriveError(
      "store_unusable",
      "The Postgres store needs the package pg, which could not be loaded. Run `npm install pg`.",
      { cause },
    );
  }
}
