// What the doctor checks without the store: Node, the config file, and who may change the files.
import { type Finding, finding } from "../store/inspection.ts";
import { doubtsAbout } from "../system/trusted-file.ts";
import type { Config } from "../config/find-config.ts";

/** Node itself. */
export function nodeFinding(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const isNew = major > 20 || (major === 20 && minor >= 19);
  return finding("node", isNew ? "ok" : "problem", process.versions.node, isNew ? null : "install 20.19 or newer");
}

/** The config file. */
export function configFinding({ file }: Config): Finding {
  return finding("config", "ok", file ?? "none");
}

/** Files and folders that another user, or a group, could change under us. */
export function ownerFindings(files: readonly string[]): Finding[] {
  return doubtsAbout(files).map((doubt) =>
    finding("owners", "warning", doubt, "if others are not to change what runs here: chown it, or chmod g-w"),
  );
}
