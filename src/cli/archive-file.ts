// Checks the archive file of a worker when the worker starts. An error that shows days later, with the first dead
// letter that is due for the archive, would go unnoticed.
import { accessSync, constants, statSync } from "node:fs";
import { dirname } from "node:path";
import { RedriveError } from "../core/errors.ts";
import { whyRefused } from "../system/trusted-file.ts";

/** Throws unless dead letters can be appended to this file, or a new one made; `given` says where its path comes from. */
export function checkArchive(path: string, given: "flag" | "config"): void {
  try {
    const file = statSync(path, { throwIfNoEntry: false });
    if (file?.isDirectory()) throw new Error("it is a folder");
    const why = whyRefused(path);
    if (why !== null) throw new Error(`it ${why}`);
    accessSync(file === undefined ? dirname(path) : path, constants.W_OK);
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    const [code, name] =
      given === "flag" ? (["invalid_argument", "archive"] as const) : (["config_refused", "worker.archive"] as const);
    const message = `${name}: expected a file that can be written; got ${path} (${said}); create its folder, or name another file`;
    throw new RedriveError(code, message, { cause });
  }
}
