// Syncs the write-ahead log of a database from outside SQLite, beside its next commits.
//
// Why this is as safe as `synchronous=FULL`: with NORMAL a commit is written to the log before it returns, only not
// synced. SQLite itself still syncs the log before a checkpoint copies from it, the database before the log starts again,
// and the head of every new log. So what a power loss can take is the end of the log that no sync has covered; a sync of
// the log that began after a commit covers that commit and all before it, whichever process made them. FULL does the same
// sync inside the commit. SQLite locks the database and its shared memory, never the log, so closing ours frees no lock.
import { closeSync, fdatasync, fdatasyncSync, fstat, openSync, realpathSync } from "node:fs";
import { dirname } from "node:path";
import { RedriveError } from "../../core/errors.ts";
import { OWNER_REMEDY } from "./engine.ts";
import { fileIdentity, syncFolder } from "./file.ts";
import { type Disk, SYNCS } from "./unsynced-answers.ts";

/** The log of an open database. */
export interface WalSync extends Disk {
  /** False once another file, or none, is in its place. */
  isCurrent(): boolean;
  /** Closes the file as soon as nothing is under way. */
  close(): void;
}

/** Opens the log of a database that is already open, and syncs the folder so that both names are on disk. */
export function openWalSync(path: string): WalSync {
  try {
    // SQLite follows links too: the log is beside the real file.
    return openFile(`${realpathSync(path)}-wal`);
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    const remedy = said.startsWith("EACCES") ? OWNER_REMEDY : "try again";
    const message = `The log of ${path} cannot be opened: ${said}. Nothing was written; ${remedy}.`;
    throw new RedriveError("store_unavailable", message, { cause });
  }
}

function openFile(path: string): WalSync {
  // The system reports a failed write once per descriptor, so every concurrent sync needs its own.
  const here = openSync(path, "r+");
  const free = Array.from({ length: SYNCS }, () => openSync(path, "r+"));
  const identity = fileIdentity(path);
  let closed = false;
  syncFolder(dirname(path));
  return {
    begin(done) {
      const beside = free.pop() as number;
      fdatasync(beside, (error) => {
        if (closed) closeSync(beside);
        else free.push(beside);
        done(error);
      });
    },
    now: () => fdatasyncSync(here),
    // Threads take work in order, and this takes no time.
    reached: (called) => fstat(here, () => called()),
    isCurrent: () => fileIdentity(path) === identity,
    close() {
      closed = true;
      for (const descriptor of [here, ...free]) closeSync(descriptor);
    },
  };
}
