// What is done with a record: one call of the API, without retries. `status` and `headers` on the error are what Redrive
// goes by; how often and when it is tried again stands in redrive.config.yaml.
import { defineJob } from "redrive";
import type { Customer } from "./customers.ts";

/** Asks the API about a customer. */
export const enrich = defineJob("enrich-customer", {
  timeout: "800ms",
  run: async ({ id, email }: Customer, { attempt, signal }) => {
    const headers = { "x-record": id, "x-attempt": String(attempt) };
    const response = await fetch(`${process.env.ENRICHMENT_URL}/people/${encodeURIComponent(email)}`, {
      headers,
      signal,
    });
    const body = (await response.json()) as { readonly company: string; readonly error?: string };
    if (response.ok) return body;
    throw Object.assign(new Error(`${response.status} ${body.error}`), {
      status: response.status,
      headers: response.headers,
    });
  },
});
