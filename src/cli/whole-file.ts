// Writes a file that gets its name only when it is complete. Until then its name ends in `.part`. A full disk leaves
// nothing behind, and a link at the path is never followed.
import { constants, createWriteStream, openSync, renameSync, rmSync, unlinkSync } from "node:fs";
import { once } from "node:events";
import { finished } from "node:stream/promises";
import { messageOf } from "../core/error-shape.ts";
import { RedriveError } from "../core/errors.ts";

/** A file that is being written. */
export interface WholeFile {
  /** Resolves when there is room for more; rejects with `aborted` where the disk refuses it. */
  write(text: string): Promise<void>;
  /** Syncs the file to disk and gives it its name. */
  end(): Promise<void>;
  /** Removes the unfinished file. */
  abandon(): void;
}

/** Begins a file that only its owner can read; `remedy` is what to do where it cannot be completed. */
export function openWhole(path: string, remedy: string): WholeFile {
  const part = partOf(path);
  // Node's stream continues after a short write, and fails where the disk takes nothing more.
  const stream = createWriteStream(part, { fd: openPart(part, path), flush: true });
  const brokenOff = (cause: unknown): RedriveError => {
    const message = `output: expected to write ${path} to its end; got ${messageOf(cause)}; ${remedy}`;
    return new RedriveError("aborted", message, { cause });
  };
  let failed: unknown = null;
  stream.on("error", (error) => (failed = error));
  return {
    async write(text) {
      if (failed) throw brokenOff(failed);
      // `once` leaves no listener behind, and rejects where the stream fails.
      if (!stream.write(text)) await once(stream, "drain").catch((error) => Promise.reject(brokenOff(error)));
    },
    async end() {
      try {
        stream.end();
        await finished(stream);
        renameSync(part, path);
      } catch (error) {
        throw brokenOff(error);
      }
    },
    abandon() {
      stream.destroy();
      try {
        rmSync(part, { force: true });
      } catch {
        // The reason why the call ends matters more than a part that could not be removed; the next call overwrites it.
      }
    },
  };
}

/** The name of a file until it is complete. */
export function partOf(path: string): string {
  return `${path}.part`;
}

/**
 * Opens the part file. A file at that path is left over from an earlier call, or a link that another user planted, so
 * it is removed, never written to.
 */
function openPart(part: string, path: string): number {
  try {
    try {
      unlinkSync(part);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    return openSync(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  } catch (cause) {
    const message = `output: expected a file that can be written; got ${JSON.stringify(path)} (${messageOf(cause)}); name another file`;
    throw new RedriveError("invalid_argument", message, { cause });
  }
}
