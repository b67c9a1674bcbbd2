// An archive file: dead letters that are about to be deleted, one JSON line each, on disk before anything is deleted.
import { open } from "node:fs/promises";
import type { DeadLetter } from "../core/job.ts";
import { exportLetters } from "../queue/export.ts";
import type { Store } from "../store/store.ts";

/** The way to append dead letters to a file that only its owner may read. */
export function archiveTo(path: string, store: Store): (letters: readonly DeadLetter[]) => Promise<void> {
  return async (letters) => {
    let text = "";
    for await (const line of exportLetters("ndjson", each(letters), store, { reveal: true })) text += line;
    const file = await open(path, "a+", 0o600);
    try {
      // A line that a crash cut short must not take the next one along.
      const { size } = await file.stat();
      const last = Buffer.alloc(1);
      if (size > 0) await file.read(last, 0, 1, size - 1);
      await file.writeFile(size > 0 && last[0] !== 0x0a ? `\n${text}` : text);
      await file.datasync();
    } finally {
      await file.close();
    }
  };
}

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}
