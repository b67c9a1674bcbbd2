// Starts the Postgres servers that tests share, once per run: 18 from npm, and 15 where Debian's is installed.
import type { TestProject } from "vitest/node";
import { POSTGRES_15, POSTGRES_18, startPostgres } from "./postgres-server.ts";

declare module "vitest" {
  export interface ProvidedContext {
    readonly postgres18: string;
    /** Null where that version is not installed. */
    readonly postgres15: string | null;
  }
}

/** Starts the servers, and ends them when all tests are done. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const new18 = await startPostgres({ bin: POSTGRES_18 });
  const old15 = POSTGRES_15 === null ? null : await startPostgres({ bin: POSTGRES_15 });
  project.provide("postgres18", new18.url());
  project.provide("postgres15", old15?.url() ?? null);
  return async () => {
    await new18.stop();
    await old15?.stop();
  };
}
