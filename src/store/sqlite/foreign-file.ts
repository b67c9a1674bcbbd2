// A store that cannot be opened because its file is not a database: names the file, and what it seems to be.
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { extname } from "node:path";
import { isRedriveError, RedriveError } from "../../core/errors.ts";

const HEADER = "SQLite format 3\0";
const LOOKED_AT = 512;

const KINDS: Readonly<Record<string, string>> = {
  ".ts": "TypeScript",
  ".mts": "TypeScript",
  ".js": "JavaScript",
  ".mjs": "JavaScript",
  ".cjs": "JavaScript",
  ".json": "JSON",
  ".ndjson": "NDJSON",
  ".yaml": "YAML",
  ".yml": "YAML",
  ".csv": "CSV",
  ".md": "Markdown",
};

/** The error about a store whose file is not a database; any other error unchanged. */
export function ofForeignFile(error: unknown, path: string): unknown {
  if (!isRedriveError(error, "store_unusable") && !isRedriveError(error, "store_unavailable")) return error;
  const kind = kindOf(path);
  if (kind === null) return error;
  const message =
    `store: expected a SQLite database; ${path} seems to be ${kind}; ` +
    "name another file with --store sqlite:PATH, which is made where there is none";
  return new RedriveError(error.code, message, { cause: error });
}

/** What a file that is not a database seems to be; null for a database, an empty file, and none. */
function kindOf(path: string): string | null {
  try {
    const file = statSync(path);
    if (file.isDirectory()) return "a folder";
    if (!file.isFile() || file.size === 0) return null;
    const head = headOf(path);
    if (head.toString("latin1").startsWith(HEADER)) return null;
    if (head.includes(0)) return "a binary file of another kind";
    const kind = KINDS[extname(path).toLowerCase()];
    return kind === undefined ? "a text file" : `a text file (${kind})`;
  } catch {
    // It does not exist, or cannot be read: the error of the store says all that is known.
    return null;
  }
}

function headOf(path: string): Buffer {
  const head = Buffer.alloc(LOOKED_AT);
  const file = openSync(path, "r");
  try {
    return head.subarray(0, readSync(file, head, 0, LOOKED_AT, 0));
  } finally {
    closeSync(file);
  }
}
