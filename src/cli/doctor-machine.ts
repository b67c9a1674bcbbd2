// The checks of `doctor` that are the same for every store: Node, the config file, and who may change the files.
import { type Finding, finding } from "../store/inspection.ts";
import { doubtsAbout } from "../system/trusted-file.ts";
import type { Config } from "../config/find-config.ts";

/** Checks the version of Node. */
export function nodeFinding(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const isNew = major > 20 || (major === 20 && minor >= 19);
  return finding("node", isNew ? "ok" : "problem", process.versions.node, isNew ? null : "install 20.19 or newer");
}

/** Names the config file. */
export function configFinding({ file }: Config): Finding {
  return finding("config", "ok", file ?? "none");
}

/** Warns about files and folders that another user, or a group, could change. */
export function ownerFindings(files: readonly string[]): Finding[] {
  return doubtsAbout(files).map((doubt) =>
    finding("owners", "warning", doubt, "to keep others from changing what runs here, chown it or chmod g-w"),
  );
}
