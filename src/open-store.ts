// Opens a store by its URL: the one place where concrete stores are chosen by name. Only the chosen one is loaded.
import { RedriveError } from "./core/errors.ts";
import { redactText } from "./core/redact.ts";
import { DEFAULT_STORE, STORE_URLS } from "./core/store-urls.ts";
import { isPostgresUrl } from "./store/postgres/address.ts";
import { readSqliteUrl } from "./store/sqlite/address.ts";
import type { Store } from "./store/store.ts";
import { realSystem } from "./system/real.ts";

/**
 * Opens `sqlite:PATH`, `postgres://…` or `memory:`. With `brief` a SQLite file is opened in the calling thread, which a
 * lock then blocks: for a program that makes a call or two and exits, and would mostly wait for a thread to start.
 */
export async function openStore(url: string, { brief = false } = {}): Promise<Store> {
  if (url === "memory:") {
    const { createMemoryStore } = await import("./store/memory/index.ts");
    return createMemoryStore({ clock: realSystem.now });
  }
  const file = readSqliteUrl(url);
  if (file && file.path !== "") {
    // A file that is not synced before the answer has a notice, which only the other store gives.
    if (brief && file.sync === "full") return (await import("./store/sqlite/inline.ts")).openSqliteInline(file);
    return (await import("./store/sqlite/index.ts")).createSqliteStore(file);
  }
  if (isPostgresUrl(url)) return (await import("./store/postgres/index.ts")).createPostgresStore({ url });
  throw new RedriveError(
    "invalid_argument",
    `store: expected ${STORE_URLS.join(", ")} or memory:; got ${JSON.stringify(redactText(url))}; for example ${DEFAULT_STORE}`,
  );
}
