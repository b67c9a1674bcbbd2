// An archive file: dead letters that are about to be deleted, one JSON line each, on disk before any is deleted.
import { open } from "node:fs/promises";
import { RedriveError } from "../core/errors.ts";
import type { DeadLetter } from "../core/job.ts";
import { exportLetters } from "./export.ts";
import type { Store } from "../store/store.ts";
import { whyRefused } from "../system/trusted-file.ts";

/** Returns a function that appends dead letters to a file that only its owner may read. */
export function archiveTo(path: string, store: Store): (letters: readonly DeadLetter[]) => Promise<void> {
  return async (letters) => {
    // It holds complete letters, so it must not be another user's file, nor a link that another user has put there.
    const why = whyRefused(path);
    if (why !== null) throw new RedriveError("invalid_argument", `The archive ${path} ${why}.`);
    let text = "";
    for await (const line of exportLetters("ndjson", each(letters), store, { reveal: true })) text += line;
    const file = await open(path, "a+", 0o600);
    try {
      // A line that a crash cut short must not spoil the next one.
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
