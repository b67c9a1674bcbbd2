// Where a database file may be: readable only by its owner, in a folder that no other user can replace, on a local
// disk. WAL mode depends on shared memory, which network file systems do not have.
import { closeSync, existsSync, fsyncSync, lstatSync, mkdirSync, openSync, statfsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { RedriveError } from "../../core/errors.ts";
import { whyRefused } from "../../system/trusted-file.ts";

/** The ids of NFS, SMB, CIFS and SMB2 in `statfs`. */
const NETWORK_FILE_SYSTEMS = new Set([0x6969, 0x517b, 0xff534d42, 0xfe534d42]);

/** Creates missing file and folder with narrow rights, and refuses unsafe ones. */
export function prepareFile(path: string): void {
  if (path === ":memory:") return;
  const folder = dirname(resolve(path));
  try {
    if (!existsSync(folder)) makeFolder(folder);
    refuseUnsafe(folder);
    refuseForeign(path);
    if (!existsSync(path)) closeSync(openSync(path, "a", 0o600));
  } catch (cause) {
    if (cause instanceof RedriveError) throw cause;
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new RedriveError("store_unavailable", `The database file ${path} cannot be opened: ${said}.`, { cause });
  }
}

/** Throws where the file, or one that SQLite keeps beside it, is not safe to use. */
export function refuseForeign(path: string): void {
  for (const file of ["", "-wal", "-shm", "-journal"].map((ending) => path + ending)) {
    const why = whyRefused(file);
    if (why !== null) throw new RedriveError("store_unusable", `The database file ${file} ${why}.`);
  }
}

/** The identity of the file at the path now; null if there is none. A replaced file has another identity. */
export function fileIdentity(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false });
  return found ? `${found.dev}:${found.ino}` : null;
}

/** Syncs the entries of a folder, where the system can do that. */
export function syncFolder(folder: string): void {
  try {
    const entry = openSync(folder, "r");
    try {
      fsyncSync(entry);
    } finally {
      closeSync(entry);
    }
  } catch {
    // Some systems cannot; SQLite ignores that too.
  }
}

/** Creates a folder with its missing parents, synced, so that a power loss loses none of them. */
function makeFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 }) ?? folder;
  for (let made = folder; made.length >= first.length; made = dirname(made)) syncFolder(dirname(made));
}

function refuseUnsafe(folder: string): void {
  const found = lstatSync(folder);
  if (found.isSymbolicLink()) throw unsafe(folder, "is a symbolic link; name the folder it points to");
  const everybody = 0o002;
  const sticky = 0o1000;
  if ((found.mode & everybody) !== 0 && (found.mode & sticky) === 0) {
    throw unsafe(folder, "can be written by every user; remove that right (chmod o-w) or choose another folder");
  }
  if (NETWORK_FILE_SYSTEMS.has(statfsSync(folder).type)) {
    throw unsafe(
      folder,
      "is on a network file system, where SQLite's WAL is not safe; choose a local disk, or Postgres for a fleet",
    );
  }
}

function unsafe(folder: string, why: string): RedriveError {
  return new RedriveError("store_unusable", `The folder ${folder} ${why}.`);
}
