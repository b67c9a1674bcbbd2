// A file that appears under its name when it is whole. Until then it is called `.part`; a disk that takes only a part of
// it leaves nothing behind, and a link that lies in the way is never followed.
import { constants, createWriteStream, openSync, renameSync, rmSync, unlinkSync } from "node:fs";
import { once } from "node:events";
import { finished } from "node:stream/promises";
import { messageOf } from "../core/error-shape.ts";
import { RedriveError } from "../core/errors.ts";

/** A file that is being written. */
export interface WholeFile {
  /** Resolves when there is room for more; rejects with `aborted` where the disk does not take it. */
  write(text: string): Promise<void>;
  /** Gives the file its name, with all of it on disk. */
  end(): Promise<void>;
  /** Leaves nothing behind. */
  abandon(): void;
}

/** Begins a file, readable by its owner alone; `remedy` is what to do where it cannot be written to its end. */
export function openWhole(path: string, remedy: string): WholeFile {
  const part = partOf(path);
  // A stream of Node's goes on after a short write, and fails where nothing more is taken.
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
        // Why the call ends is worth more than that its rest could not be removed; the next call writes over it.
      }
    },
  };
}

/** What a file is called until it is whole. */
export function partOf(path: string): string {
  return `${path}.part`;
}

/** What lies there is the rest of an earlier call, or a link that another user planted: it is removed, not written to. */
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
    const message = `output: expected a file that may be written; got ${JSON.stringify(path)} (${messageOf(cause)}); name another, or make way for it`;
    throw new RedriveError("invalid_argument", message, { cause });
  }
}
