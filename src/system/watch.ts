// Watches files for changes made by other processes.
import { type FSWatcher, watch } from "node:fs";

/** Calls back when a file of that name in the folder was written; returns the way to stop. */
export function watchFile(folder: string, name: string, changed: () => void): () => void {
  let watcher: FSWatcher | null = null;
  try {
    watcher = watch(folder, { persistent: false }, (_event, file) => {
      if (file === name) changed();
    });
    // A folder that goes away ends the watch; polling goes on.
    watcher.on("error", () => watcher?.close());
  } catch {
    // No watch to be had here (limits of the system): a hint less, polling is the truth.
  }
  return () => watcher?.close();
}
