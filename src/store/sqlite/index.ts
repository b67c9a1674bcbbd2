// The SQLite store: one file, one store thread per process, any number of processes. Every write of a process goes
// through that thread and shares its commits. An answered write survives a power loss: the log is synced before the
// answer, which is the promise of `synchronous=FULL` without its wait inside every commit.
import { realSystem } from "../../system/real.ts";
import type { Store } from "../store.ts";
import type { Sync } from "./address.ts";
import { sqliteStore } from "./facade.ts";
import { ThreadClient } from "./thread-client.ts";
import { openShared } from "../liveness-counter.ts";
import { WakeSet } from "./wake.ts";

const LESS_SAFE =
  "sync=normal: writes are answered before they are on disk; a power loss may lose the last ones, the death of a process loses none";

/** Opens a store on a file; the file is created on first use. */
export function createSqliteStore({ path, sync = "full" }: { readonly path: string; readonly sync?: Sync }): Store {
  const line = new ThreadClient(path, sync);
  const wake = new WakeSet(path, realSystem);
  return sqliteStore((request) => line.carry(request), {
    wake,
    ...(sync === "normal" && { notice: LESS_SAFE }),
    pulse(request, listener) {
      const { shared, show } = openShared();
      const number = line.startPulse({ request, shared }, listener);
      return { show, stop: () => line.stopPulse(number) };
    },
    async close() {
      wake.clear();
      await line.close();
    },
  });
}
