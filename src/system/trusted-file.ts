// Whose file it is that we are about to run or to keep jobs in. In a folder that everybody may write to, such as /tmp,
// another user's file can lie under a name that we look for; and what is no regular file may never end.
import { accessSync, constants, lstatSync, realpathSync, statSync, type Stats } from "node:fs";
import { dirname } from "node:path";

const EVERYBODY = 0o002;
const GROUP = 0o020;
const ROOT = 0;

/** Why this file must not be used, as the end of a sentence that begins with its name; null where nothing speaks against it. */
export function whyRefused(path: string): string | null {
  try {
    const entry = lstatSync(path, { throwIfNoEntry: false });
    if (entry === undefined) return null;
    const folder = dirname(path);
    if (entry.isSymbolicLink() && isShared(folder))
      return `is a link in ${folder}, which everybody can write to; name the file itself, in a folder of your own`;
    const file = statSync(path);
    if (!file.isFile()) return `is ${kindOf(file)}; name a regular file`;
    if (process.getuid === undefined) return null;
    if ((file.mode & EVERYBODY) !== 0) return "can be written by everybody; take that right away (chmod o-w)";
    const home = dirname(realpathSync(path));
    if (isForeign(file) && isShared(home))
      return `belongs to another user (${file.uid}) and lies in ${home}, which everybody can write to; use a folder of your own`;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ELOOP") return "is a link that leads back to itself; name a regular file";
    if (code === "ENOENT") return "is a link that leads nowhere; name a regular file";
    // What we may not even look at is told when it is opened.
  }
  return null;
}

/** What others may do to files that we use all the same, and to their folders: a sentence each. */
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

/** True for a folder that everybody may write to; what is mounted read-only nobody can. */
function isShared(folder: string): boolean {
  if (process.getuid === undefined || (statSync(folder).mode & EVERYBODY) === 0) return false;
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "EROFS";
  }
}
