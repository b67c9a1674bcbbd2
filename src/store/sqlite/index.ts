// The SQLite store: one file, one store thread per process, any number of processes. Every write of a process goes
// through that thread and shares its commits. Questions of people go to a second thread, which only reads. An answered write survives a power loss: the log is synced before the
// answer, which is the promise of `synchronous=FULL` without its wait inside every commit.
import { realSystem } from "../../system/real.ts";
import type { Store } from "../store.ts";
import { VERBS } from "../verb-facts.ts";
import { describeSqlite, type Sync } from "./address.ts";
import { type Carrier, sqliteStore } from "./facade.ts";
import { ThreadClient } from "./thread-client.ts";
import { openShared } from "../liveness-counter.ts";
import { WakeSet } from "./wake.ts";

/** Opens a store on a file; the file is created on first use. */
export function createSqliteStore({ path, sync = "full" }: { readonly path: string; readonly sync?: Sync }): Store {
  const line = new ThreadClient({ path, sync, readOnly: false });
  const reader = new ThreadClient({ path, sync, readOnly: true });
  const wake = new WakeSet(path, realSystem);
  // A database in memory belongs to one connection.
  const isShared = describeSqlite({ path, sync }).file !== null;
  const carry: Carrier = (request) => (isShared && VERBS[request.verb].forPeople ? reader : line).carry(request);
  return sqliteStore(
    carry,
    { path, sync },
    {
      wake,
      pulse(request, listener) {
        const { shared, show } = openShared();
        const number = line.startPulse({ request, shared }, listener);
        return { show, stop: () => line.stopPulse(number) };
      },
      async close() {
        wake.clear();
        await Promise.all([line.close(), reader.close()]);
      },
    },
  );
}
