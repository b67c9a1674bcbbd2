// Programs that tests use where they are found, beside what npm installs: how each is found, and where it comes from.
// prepare.mjs fetches them, verify.mjs says which were missing.

import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { root } from "./ready.mjs";

/** Tools from Python's index go here; the folder is ignored by git. */
export const PYTHON_TOOLS = join(root, "node_modules", ".cache", "redrive-python");

function isOnPath(name) {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

const program = (...names) => names.some(isOnPath);

/** `tests` says whether a test uses it today; `debian` and `python` name its package. */
export const TOOLS = {
  postgres15: {
    name: "Postgres 15",
    tests: true,
    debian: "postgresql-15",
    isHere: () => existsSync("/usr/lib/postgresql/15/bin/postgres"),
  },
  pgbouncer: { name: "PgBouncer", tests: true, debian: "pgbouncer", isHere: () => program("pgbouncer") },
  ffmpeg: { name: "ffmpeg", tests: true, debian: "ffmpeg", isHere: () => program("ffmpeg") },
  prometheus: { name: "promtool", tests: true, debian: "prometheus", isHere: () => program("promtool") },
  browser: {
    name: "chromium",
    tests: true,
    debian: "chromium",
    isHere: () => program("chromium", "chromium-browser", "google-chrome"),
  },
  redis: {
    name: "Redis",
    tests: false,
    debian: "redis-server",
    isHere: () => program("redis-server", "valkey-server"),
  },
  spark: {
    name: "Spark",
    tests: false,
    python: "pyspark",
    isHere: () => program("spark-submit") || existsSync(join(PYTHON_TOOLS, "bin", "spark-submit")),
  },
};

/** The tools that a test uses and that are not here, by their options. */
export function missingTools() {
  return Object.keys(TOOLS).filter((option) => TOOLS[option].tests && !TOOLS[option].isHere());
}
