// The SQLite store in the calling thread: every statement, and every wait for a lock, blocks the caller. A commit is
// synced before it returns. For tests and simulation, and for programs that end after a call or two.
import { realSystem } from "../../system/real.ts";
import { blockThread } from "../../system/threads.ts";
import type { Store } from "../store.ts";
import { type EngineOptions, openEngine, type Reply } from "./engine.ts";
import { type Carrier, sqliteStore } from "./facade.ts";
import { prepareFile } from "./file.ts";

/** Opens a store whose statements run in the calling thread, with the caller's clock. */
export function createInlineSqliteStore(options: Pick<EngineOptions, "path" | "clock" | "migrations">): Store {
  const { random } = realSystem;
  const engine = openEngine({ ...options, blockMs: blockThread, random });
  const carry: Carrier = async (request) => engine.carryOut([request])[0] as Reply;
  return sqliteStore(
    carry,
    { path: options.path, sync: "full" },
    {
      wake: new Set(),
      async close() {
        engine.close();
      },
    },
  );
}

/** The same on a file that is checked, and created where it is missing, as the store thread does it. */
export function openSqliteInline({ path }: { readonly path: string }): Store {
  prepareFile(path);
  return createInlineSqliteStore({ path, clock: realSystem.now });
}
