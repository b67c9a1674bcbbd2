// Keeps texts until they are read back, in the order in which they were added: in memory as long as they are few, then in a
// temporary file that only this process can reach.
import { mkdtemp, open, rm, type FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Texts to be read back once all are there. */
export interface Spool {
  add(text: string): Promise<void>;
  /** All texts so far. */
  all(): AsyncGenerator<string>;
  /** Deletes them. */
  close(): Promise<void>;
}

/** The bytes that stay in memory. */
const MEMORY_BYTES = 8_388_608;
/** Before each text stands its length. */
const HEAD_BYTES = 4;

/** Opens an empty one; it has a file as soon as it has more than `memoryBytes`. */
export function openSpool(memoryBytes = MEMORY_BYTES): Spool {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let fileBytes = 0;
  let file: { readonly handle: FileHandle; readonly path: string } | null = null;
  const flush = async (): Promise<void> => {
    file ??= await temporaryFile();
    const bytes = Buffer.concat(held);
    [held, heldBytes] = [[], 0];
    await file.handle.appendFile(bytes);
    fileBytes += bytes.length;
  };
  return {
    async add(text) {
      const body = Buffer.from(text, "utf8");
      const head = Buffer.alloc(HEAD_BYTES);
      head.writeUInt32LE(body.length);
      held.push(head, body);
      heldBytes += HEAD_BYTES + body.length;
      if (heldBytes > memoryBytes) await flush();
    },
    async *all() {
      for (let at = 0; file !== null && at < fileBytes; ) {
        const length = (await bytesAt(file.handle, at, HEAD_BYTES)).readUInt32LE();
        yield (await bytesAt(file.handle, at + HEAD_BYTES, length)).toString("utf8");
        at += HEAD_BYTES + length;
      }
      for (let at = 1; at < held.length; at += 2) yield (held[at] as Buffer).toString("utf8");
    },
    async close() {
      held = [];
      if (file === null) return;
      const { handle, path } = file;
      file = null;
      await handle.close();
      await rm(dirname(path), { recursive: true, force: true });
    },
  };
}

/** A file in a folder of its own, which goes at once where the system keeps an open file without a name. */
async function temporaryFile(): Promise<{ readonly handle: FileHandle; readonly path: string }> {
  const path = join(await mkdtemp(join(tmpdir(), "redrive-")), "spool");
  const handle = await open(path, "wx+", 0o600);
  if (process.platform !== "win32") await rm(dirname(path), { recursive: true, force: true });
  return { handle, path };
}

async function bytesAt(handle: FileHandle, from: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; ) {
    const { bytesRead } = await handle.read(bytes, at, length - at, from + at);
    if (bytesRead === 0) throw new Error("The temporary file was cut.");
    at += bytesRead;
  }
  return bytes;
}
