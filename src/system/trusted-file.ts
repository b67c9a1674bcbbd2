// Checks who owns a file that we are about to run or to store jobs in. In a folder that every user can write to, such
// as /tmp, another user's file can lie at the path we look for; and reading a file that is not regular may never end.
import { accessSync, constants, lstatSync, realpathSync, statSync, type Stats } from "node:fs";
import { dirname } from "node:path";

const EVERYBODY = 0o002;
const GROUP = 0o020;
const ROOT = 0;

/** Why this file must not be used, as a phrase that follows its name; null where nothing speaks against it. */
export function whyRefused(path: string): string | null {
  let isLink = false;
  try {
    const entry = lstatSync(path, { throwIfNoEntry: false });
    if (entry === undefined) return null;
    isLink = entry.isSymbolicLink();
    const folder = dirname(path);
    if (isLink && isShared(folder))
      return `is a link in ${folder}, which every user can write to; name the file itself, in a folder that only you can write to`;
    const file = statSync(path);
    if (!file.isFile()) return `is ${kindOf(file)}; name a regular file`;
    if (process.getuid === undefined) return null;
    if ((file.mode & EVERYBODY) !== 0) return "can be written by every user; remove that right (chmod o-w)";
    const home = dirname(realpathSync(path));
    if (isForeign(file) && isShared(home))
      return `belongs to another user (${file.uid}) and lies in ${home}, which every user can write to; use a folder that only you can write to`;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ELOOP") return "is a link that leads back to itself; name a regular file";
    // Another process may have deleted the file meanwhile, as SQLite does with its journal.
    if (code === "ENOENT") return isLink ? "is a link that leads nowhere; name a regular file" : null;
    // A path that we may not read is reported when it is opened.
  }
  return null;
}

/** The number of the user that a file belongs to; null where that is the one that runs this process, or is not known. */
export function otherOwner(path: string): number | null {
  try {
    const { uid } = statSync(path);
    return process.getuid === undefined || uid === process.getuid() ? null : uid;
  } catch {
    return null;
  }
}

/** What other users may do to files that we use anyway, and to their folders: a sentence each. */
export function doubtsAbout(paths: readonly string[]): string[] {
  if (process.getuid === undefined) return [];
  const files = paths.filter((path) => statSync(path, { throwIfNoEntry: false }) !== undefined);
  const places = new Set([...files, ...files.map((path) => dirname(realpathSync(path)))]);
  return [...places].flatMap((place) => {
    const found = statSync(place);
    return [
      ...(isForeign(found) ? [`${place} belongs to another user (${found.uid})`] : []),
      ...((found.mode & GROUP) === 0 ? [] : [`${place} can be written by its group`]),
    ];
  });
}

function kindOf(file: Stats): string {
  if (file.isDirectory()) return "a folder";
  if (file.isFIFO()) return "a named pipe";
  return file.isSocket() ? "a socket" : "a device";
}

function isForeign({ uid }: Stats): boolean {
  return uid !== process.getuid?.() && uid !== ROOT;
}

/** True for a folder that every user may write to; a read-only mount is not one. */
function isShared(folder: string): boolean {
  if (process.getuid === undefined || (statSync(folder).mode & EVERYBODY) === 0) return false;
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "EROFS";
  }
}
