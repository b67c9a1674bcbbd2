// A folder as object store: objects in, thumbnails out, and errors like those of a real one. A write is a temporary file
// and a rename, so that no reader sees half an object, whichever process dies in the middle.
import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, stat, truncate, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Where everything of a run lies; worker processes learn it from the environment. */
export const folder = resolve(process.env.THUMBNAILS_FOLDER ?? fileURLToPath(new URL("data", import.meta.url)));

/** The store of the jobs where none is given: a file beside the objects. */
export const defaultStore = `sqlite:${join(folder, "redrive.db")}`;

/** What the store answers when it cannot do what was asked, with the status an HTTP store would use. */
export class ObjectStoreError extends Error {
  override readonly name = "ObjectStoreError";
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** True for a name that stays inside its folder. */
export function isKey(key: unknown): key is string {
  return typeof key === "string" && /^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/.test(key);
}

/** The path of an object, for programs that read files; fails as the store does. */
export async function locate(key: string): Promise<string> {
  await failIfToldTo(key);
  const path = join(folder, "objects", key);
  try {
    await stat(path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause;
    throw new ObjectStoreError(404, `no such object: ${key}`, { cause });
  }
  return path;
}

/** The bytes of an object. */
export async function read(key: string): Promise<Buffer> {
  return readFile(await locate(key));
}

/** Writes an object or a thumbnail; it is there as a whole or not at all. */
export async function write(kind: "objects" | "thumbnails", key: string, bytes: Uint8Array): Promise<void> {
  const path = join(folder, kind, key);
  const temporary = join(folder, "unfinished", randomUUID());
  await Promise.all([mkdir(dirname(path), { recursive: true }), mkdir(dirname(temporary), { recursive: true })]);
  await writeFile(temporary, bytes);
  await rename(temporary, path);
}

/** The keys of all thumbnails. */
export async function thumbnailKeys(): Promise<string[]> {
  const entries = await readdir(join(folder, "thumbnails"), { recursive: true, withFileTypes: true }).catch(() => []);
  const root = join(folder, "thumbnails");
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .toSorted();
}

/** The bytes of a thumbnail. */
export function readThumbnail(key: string): Promise<Buffer> {
  return readFile(join(folder, "thumbnails", key));
}

/** Lets the store answer 503 so many times when it is asked for this object. */
export async function planFaults(key: string, times: number): Promise<void> {
  await mkdir(join(folder, "faults"), { recursive: true });
  await writeFile(join(folder, "faults", key), "x".repeat(times));
}

/** One letter in the object's file of faults is one failure to come; removing the file mends it. */
async function failIfToldTo(key: string): Promise<void> {
  const file = join(folder, "faults", key);
  const left = await stat(file).then(
    ({ size }) => size,
    () => 0,
  );
  if (left === 0) return;
  await truncate(file, left - 1);
  throw new ObjectStoreError(503, `the object store is busy: ${key}`);
}
