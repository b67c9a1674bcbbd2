// From a store URL to a store: the one place where concrete stores are chosen by name.
import { RedriveError } from "./core/errors.ts";
import { redactText } from "./core/redact.ts";
import { createMemoryStore } from "./store/memory/index.ts";
import { createPostgresStore } from "./store/postgres/index.ts";
import { isPostgresUrl } from "./store/postgres/address.ts";
import { readSqliteUrl } from "./store/sqlite/address.ts";
import { createSqliteStore } from "./store/sqlite/index.ts";
import type { Store } from "./store/store.ts";
import { realSystem } from "./system/real.ts";

/** Opens `sqlite:PATH`, `postgres://…` or `memory:`. */
export function openStore(url: string): Store {
  if (url === "memory:") return createMemoryStore({ clock: realSystem.now });
  const file = readSqliteUrl(url);
  if (file && file.path !== "") return createSqliteStore(file);
  if (isPostgresUrl(url)) return createPostgresStore({ url });
  throw new RedriveError(
    "invalid_argument",
    `store: expected sqlite:PATH, postgres://… or memory:; got ${JSON.stringify(redactText(url))}; for example sqlite:./redrive.db`,
  );
}
