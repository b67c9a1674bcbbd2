// Preloaded into a process: writes the address of every module that its main thread imports into the file that REDRIVE_MODULES
// names, one a line.
import { appendFileSync } from "node:fs";
import { register } from "node:module";

const file = process.env.REDRIVE_MODULES;

/** A hook of Node's loader; this module is also the one that holds the hooks. */
export async function load(url, context, next) {
  appendFileSync(file, `${url}\n`);
  return next(url, context);
}

// Node loads this module once more beside the program, for its hooks, where there is no program to register for.
if (process.env.REDRIVE_MODULES_HOOKED !== "yes") {
  process.env.REDRIVE_MODULES_HOOKED = "yes";
  register(import.meta.url);
}
