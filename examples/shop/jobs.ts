// The job types of the demo: a shop that charges, resizes, mails and syncs through one outside service. The worker
// processes load them from here, and so can you afterwards, with `drain --jobs`. While the demo runs, the service is at
// the address in REDRIVE_DEMO_SERVICE; without one it counts as well again, and everything it gets succeeds.
import { defineJob, exponential, type JobContext, type ServiceOptions, type StandardSchema } from "redrive";

/** What every job of the shop carries. */
export interface OrderInput {
  readonly order: number;
  readonly customer: string;
}

/** The release whose workers understand money as text; the one before refuses it. */
export const FIXED_RELEASE = "1.1.0";
/** The release of this process. */
export const RELEASE = process.env["REDRIVE_DEMO_RELEASE"] ?? "1.0.0";
/** The type with the bug. */
export const BROKEN_TYPE = "charge-card";

/** Charges a card; its attempts alone would not outlast the outage, its breaker does. */
export const chargeCard = defineJob(BROKEN_TYPE, {
  input: fields<OrderInput & { readonly amount: number }>({
    order: "number",
    customer: "string",
    amount: RELEASE === FIXED_RELEASE ? "money" : "number",
  }),
  service: "payments",
  maxAttempts: 5,
  timeout: "2s",
  backoff: exponential({ initial: "400ms", multiplier: 2, max: "2s", jitter: "equal" }),
  run: (input, context) => call("payments", input, context),
});

/** Makes a thumbnail; gives up soon, because it can be redriven at any time. */
export const resizeImage = defineJob("resize-image", {
  input: fields<OrderInput & { readonly image: string }>({ order: "number", customer: "string", image: "string" }),
  service: "media",
  maxAttempts: 3,
  timeout: "2s",
  backoff: exponential({ initial: "250ms", multiplier: 2, max: "1s", jitter: "equal" }),
  run: (input, context) => call("media", input, context),
});

/** Sends a receipt. */
export const sendEmail = defineJob("send-email", {
  input: fields<OrderInput & { readonly to: string }>({ order: "number", customer: "string", to: "string" }),
  service: "mail",
  maxAttempts: 9,
  timeout: "2s",
  backoff: exponential({ initial: "400ms", multiplier: 2, max: "2s", jitter: "equal" }),
  run: (input, context) => call("mail", input, context),
});

/** Tells the customer database; the service at its other end is known to hang. */
export const syncCrm = defineJob("sync-crm", {
  input: fields<OrderInput>({ order: "number", customer: "string" }),
  service: "crm",
  maxAttempts: 6,
  timeout: "1s",
  backoff: exponential({ initial: "400ms", multiplier: 2, max: "2s", jitter: "equal" }),
  run: (input, context) => call("crm", input, context),
});

/** All of them. */
export const DEMO_JOBS = [chargeCard, resizeImage, sendEmail, syncCrm] as const;

/** Failures in a row that open a breaker. */
export const OPENS_AFTER = 5;

/** A breaker for each service, quick for a day of a few seconds; in a program of your own the defaults will do. */
export const DEMO_SERVICES: Readonly<Record<string, ServiceOptions>> = {
  "*": { breaker: { failures: OPENS_AFTER, openFor: "600ms", probes: 2, closeAfter: 2 }, ramp: "3s" },
};

async function call(service: string, input: OrderInput, { job, signal }: JobContext): Promise<unknown> {
  const address = process.env["REDRIVE_DEMO_SERVICE"];
  if (!address) return { carriedOut: true, by: `${service}, which is well again` };
  const response = await post(`${address}/${service}`, input, job.id, signal);
  const body: unknown = await response.json();
  if (response.ok) return body;
  const { error } = body as { readonly error: string };
  throw Object.assign(new Error(`${service}: ${response.status} ${error}`), {
    status: response.status,
    headers: response.headers,
  });
}

/** The key makes a second call for the same job harmless: the service knows it and carries it out once. */
async function post(address: string, input: OrderInput, key: string, signal: AbortSignal): Promise<Response> {
  const headers = { "content-type": "application/json", "idempotency-key": key, "x-worker": String(process.pid) };
  try {
    return await fetch(address, { method: "POST", headers, body: JSON.stringify(input), signal });
  } catch (cause) {
    signal.throwIfAborted();
    throw new Error("the service broke off the connection", { cause });
  }
}

/** What a field may be; money is a number, or a text such as `12.5 EUR`. */
type Kind = "number" | "string" | "money";

/** A schema in a few lines; in a program of your own, use zod, valibot or arktype. */
function fields<T>(kinds: Readonly<Record<keyof T & string, Kind>>): StandardSchema<T, T> {
  return {
    "~standard": {
      version: 1,
      vendor: "redrive-demo",
      validate(value) {
        const given = (typeof value === "object" ? value : null) as Record<string, unknown> | null;
        const read = Object.entries<Kind>(kinds).map(
          ([name, kind]) => [name, kind, fieldOf(given?.[name], kind)] as const,
        );
        const wrong = read.filter(([, , field]) => field === undefined);
        if (wrong.length === 0) return { value: Object.fromEntries(read.map(([name, , field]) => [name, field])) as T };
        return { issues: wrong.map(([name, kind]) => ({ message: `expected a ${String(kind)}`, path: [name] })) };
      },
    },
  };
}

/** The value of a field; undefined for one that is wrong. */
function fieldOf(value: unknown, kind: Kind): unknown {
  if (kind !== "money") return typeof value === kind ? value : undefined;
  const [, amount = value] = typeof value === "string" ? (/^(\d+(?:\.\d+)?) EUR$/.exec(value) ?? []) : [];
  return Number.isFinite(Number(amount)) && amount !== "" ? Number(amount) : undefined;
}
