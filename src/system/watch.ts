// Watches files for changes made by other processes.
import { type FSWatcher, watch } from "node:fs";

/** Calls back when a file of that name in the folder was written; returns a function that stops the watch. */
export function watchFile(folder: string, name: string, changed: () => void): () => void {
  let watcher: FSWatcher | null = null;
  try {
    watcher = watch(folder, { persistent: false }, (_event, file) => {
      if (file === name) changed();
    });
    // A folder that is removed ends the watch; polling continues.
    watcher.on("error", () => watcher?.close());
  } catch {
    // No watch is available (limits of the system); polling works without its hints.
  }
  return () => watcher?.close();
}
