// The memory store: the short reference that every other store is compared with, and a store for tests and small tools.
// Nothing survives the process.
import type { Store, StoreDescription } from "../store.ts";
import { storeFrom, type Verbs } from "../verbs.ts";
import { causeVerbs } from "./causes.ts";
import { cellVerbs } from "./cells.ts";
import { controlVerbs } from "./control.ts";
import { deadLetterVerbs } from "./dead-letters.ts";
import { eventVerbs } from "./event-log.ts";
import { failureVerbs } from "./failures.ts";
import { groupVerbs } from "./groups.ts";
import { jobVerbs } from "./jobs.ts";
import { redriveVerbs } from "./redrives.ts";
import { retentionVerbs } from "./retention.ts";
import { emptyTables, type Tables } from "./tables.ts";
import { workVerbs } from "./work.ts";
import { workerVerbs } from "./workers.ts";

/** The description of every store in memory. */
export const IN_MEMORY: StoreDescription = {
  name: "memory",
  shown: "the memory of this process",
  file: null,
  notice: null,
};

/** Every verb, on these tables. */
export function memoryVerbs(tables: Tables): Verbs {
  return {
    migrate: () => null,
    ...jobVerbs(tables),
    ...workVerbs(tables),
    ...groupVerbs(tables),
    ...workerVerbs(tables),
    ...deadLetterVerbs(tables),
    ...redriveVerbs(tables),
    ...failureVerbs(tables),
    ...retentionVerbs(tables),
    ...controlVerbs(tables),
    ...cellVerbs(tables),
    ...eventVerbs(tables),
    ...causeVerbs(tables),
  };
}

/** A store in the memory of this process; its clock is a parameter. */
export function createMemoryStore(options: { readonly clock: () => number }): Store {
  const verbs = memoryVerbs(emptyTables(options.clock));
  return storeFrom(
    IN_MEMORY,
    async (verb, args) => (verbs[verb] as (...given: readonly unknown[]) => unknown)(...args),
    {
      wake: new Set(),
      close: async () => undefined,
    },
  );
}
