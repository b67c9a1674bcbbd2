// Reads records from a SQL query, one per row, on demand. The database is only read.
import { invalid } from "../core/options.ts";
import type { StoreAddress } from "../store/inspection.ts";
import type { PlacedRecord } from "./records-in.ts";

/** The rows of a query as records. */
export async function* queryRecords(from: StoreAddress, sql: string): AsyncGenerator<PlacedRecord> {
  let number = 0;
  for await (const row of (await from.inspect()).rows(sql)) {
    number += 1;
    const place = `row ${number}`;
    const bytes = Object.entries(row).find(([, value]) => value instanceof Uint8Array);
    if (bytes)
      throw invalid(place, "text, numbers or null", `bytes in ${bytes[0]}`, "leave the column out, or encode it");
    yield { text: JSON.stringify(row, allDigits), place };
  }
}

/** Integers that do not fit into a number are written as text, as a server returns them. */
function allDigits(_name: string, value: unknown): unknown {
  if (typeof value !== "bigint") return value;
  return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
}
