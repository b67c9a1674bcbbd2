// The checks of `doctor` on a Postgres server: version, commit safety, clock, schema, our rights.
import { realSystem } from "../../system/real.ts";
import { type Finding, finding, schemaFinding } from "../inspection.ts";
import type { PostgresStore } from "./index.ts";

const CLOCK_SLACK_MS = 5_000;

/** Checks the server of an open store. */
export async function serverFindings(store: PostgresStore): Promise<Finding[]> {
  const { version, fsync, synchronousCommit, now } = await store.server();
  const apart = Math.abs(now - realSystem.now());
  const safe = fsync === "on" && synchronousCommit !== "off";
  const level = `fsync ${fsync}, synchronous_commit ${synchronousCommit}`;
  return [
    finding("server", "ok", `Postgres ${version} at ${store.describe().shown}`),
    safe
      ? finding("durable", "ok", level)
      : finding("durable", "warning", level, "a power loss can lose jobs that Redrive confirmed; set both to on"),
    apart > CLOCK_SLACK_MS
      ? finding(
          "clock",
          "warning",
          `the server's clock is ${Math.round(apart / 1000)} s away from this machine's`,
          "synchronise both; due times follow the server's clock",
        )
      : finding("clock", "ok", new Date(now).toISOString()),
    schemaFinding(await store.schema()),
    rightsFinding(await store.missingRights()),
  ];
}

const NAMED = 5;

function rightsFinding(missing: readonly string[]): Finding {
  if (missing.length === 0) return finding("rights", "ok", "all that is needed");
  const more = missing.length - NAMED;
  const message = `missing: ${missing.slice(0, NAMED).join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
  const remedy =
    "grant select, insert, update, delete on all tables and usage on all sequences of the schema, after every `migrate`";
  return finding("rights", "problem", message, remedy);
}
