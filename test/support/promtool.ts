// Prometheus' own check of a page of metrics, where its program is installed (`node scripts/prepare.mjs --prometheus`).
import { spawnSync } from "node:child_process";
import { TOOLS } from "../../scripts/tools.mjs";

/** How the check ended and what it said. */
export interface Checked {
  readonly code: number | null;
  readonly said: string;
}

/** Checks the text of metrics; null where promtool is not installed. */
export const promtool: ((text: string) => Checked) | null = TOOLS.prometheus.isHere()
  ? (text) => {
      const { status, stdout, stderr } = spawnSync("promtool", ["check", "metrics"], {
        input: text,
        encoding: "utf8",
        timeout: 60_000,
      });
      return { code: status, said: stdout + stderr };
    }
  : null;
