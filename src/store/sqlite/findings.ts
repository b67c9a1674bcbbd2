// The checks of `doctor` on SQLite: the library, the file, its folder, its disk, the clock.
import { accessSync, constants, existsSync, lstatSync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { isRedriveError } from "../../core/errors.ts";
import { oneLine, quoted } from "../../core/safe-text.ts";
import { realSystem } from "../../system/real.ts";
import { type Finding, finding, schemaFinding } from "../inspection.ts";
import type { Store } from "../store.ts";
import { filePlan, lookInto } from "./database-file.ts";
import { isSoundVersion } from "./engine.ts";

/** Checks the SQLite library. */
export function libraryFinding(): Finding {
  const driver = Number(process.versions.node.split(".")[0]) >= 24 ? "node:sqlite" : "better-sqlite3";
  try {
    const version = lookInto(":memory:", (db) => db.prepare("select sqlite_version()").all()[0]?.[0] as string);
    if (isSoundVersion(version)) return finding("sqlite", "ok", `${version} (${driver})`);
    return finding(
      "sqlite",
      "problem",
      `${version} can lose commits (WAL-reset bug)`,
      `update ${driver} to get 3.51.3 or newer`,
    );
  } catch (error) {
    const said = error instanceof Error ? oneLine(error.message) : String(error);
    return finding(
      "sqlite",
      "problem",
      said,
      `run \`npm install ${driver}\` with this version of Node, or \`npm rebuild ${driver}\``,
    );
  }
}

const GIGABYTE = 1_073_741_824;
/** Files over this size are not read through: that would take too long for a quick check. */
const CHECKED_MOST = GIGABYTE / 4;
const CLOCK_SLACK_MS = 60_000;

/** Checks the database file, its folder, its disk and its schema; a missing file is the only finding. */
export function fileFindings(path: string): Finding[] {
  if (!existsSync(path)) {
    const remedy = "name it with --store sqlite:PATH or REDRIVE_STORE, or create it with `migrate`";
    return [finding("store", "problem", `there is no file ${path}`, remedy)];
  }
  const file = statSync(path);
  const folder = dirname(path);
  const { bavail, bsize } = statfsSync(folder);
  const now = realSystem.now();
  const locked = [path, `${path}-wal`, `${path}-shm`, folder].filter((each) => existsSync(each) && !isWritable(each));
  const rights = locked.length === 0 ? rightsFinding(path, file.mode) : lockedOut(locked);
  const findings = [rights, folderFinding(folder), spaceFinding(bavail * bsize)];
  const ahead = file.mtimeMs - now;
  findings.push(
    ahead > CLOCK_SLACK_MS
      ? finding(
          "clock",
          "problem",
          `the store was written ${Math.round(ahead / 1000)} s in the future`,
          "set the clock of this machine",
        )
      : finding("clock", "ok", new Date(now).toISOString()),
  );
  if (locked.length > 0) return findings;
  try {
    findings.push(schemaFinding(filePlan(path)), ...integrityFinding(path, file.size));
  } catch (error) {
    if (!isRedriveError(error)) throw error;
    // Without a SQLite library nothing is known about the file; the finding about the library is already in the list. A
    // schema that this program refuses is reported when the store is opened.
    if (error.code === "store_unusable") return findings;
    findings.push(
      finding("file", "problem", oneLine(error.message), "name another file, or restore this one from a backup"),
    );
  }
  return findings;
}

/** Checks whether every answered write is on disk. */
export function durableFinding(store: Store): Finding {
  const { notice } = store.describe();
  if (notice === null) return finding("durable", "ok", "every answered write is on disk");
  return finding("durable", "warning", notice, "remove ?sync=normal to have every answered write on disk");
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function lockedOut(places: readonly string[]): Finding {
  const owners = [...new Set(places.map((place) => statSync(place).uid))];
  const message = `you may not read and write ${places.join(", ")} (owner: user ${owners.join(", ")})`;
  return finding("rights", "problem", message, `chmod u+rw ${places.map(quoted).join(" ")}, or run as the owner`);
}

function rightsFinding(path: string, mode: number): Finding {
  const rights = (mode & 0o777).toString(8).padStart(4, "0");
  if ((mode & 0o077) === 0) return finding("rights", "ok", `${rights} ${path}`);
  return finding("rights", "warning", `${rights}: others can read ${path}`, `chmod 600 ${path}`);
}

function folderFinding(folder: string): Finding {
  const { mode } = lstatSync(folder);
  const isOpen = (mode & 0o002) !== 0;
  if (isOpen && (mode & 0o1000) === 0)
    return finding("folder", "problem", `every user can write to ${folder}`, `chmod o-w ${folder}`);
  if (isOpen)
    return finding(
      "folder",
      "warning",
      `${folder} is shared by all users`,
      "keep the store in a folder that only you can write to",
    );
  return finding("folder", "ok", folder);
}

function spaceFinding(free: number): Finding {
  const shown = `${(free / GIGABYTE).toFixed(1)} GB free`;
  if (free < GIGABYTE / 10) return finding("disk", "problem", shown, "make room: a full disk stops all work");
  return finding("disk", free < GIGABYTE ? "warning" : "ok", shown, free < GIGABYTE ? "make room soon" : null);
}

function integrityFinding(path: string, size: number): Finding[] {
  if (size > CHECKED_MOST)
    return [finding("integrity", "ok", `not checked: the file has ${(size / GIGABYTE).toFixed(1)} GB`)];
  const said = lookInto(path, (db) => db.prepare("pragma quick_check(1)").all()[0]?.[0] as string);
  if (said === "ok") return [finding("integrity", "ok", "no damage found")];
  return [
    finding(
      "integrity",
      "problem",
      oneLine(said),
      "stop the workers, copy the file, and recover it with `sqlite3 FILE .recover`",
    ),
  ];
}
