// A client as anybody writes one: one call, no retries. What Redrive needs to know is on the error: `status` and `headers`
// for an answer that is none, the cause for a call that did not get through.

/** Who asks for what. */
export interface PriceRequest {
  readonly item: number;
  readonly customer: string;
  /** Names the request, however often it is tried. */
  readonly request: string;
}

/** What the service gets to know about the caller. */
export interface Caller {
  readonly from: "job" | "visitor";
  readonly attempt: number;
  readonly signal: AbortSignal;
}

/** Asks the service at this address for a price, once. */
export async function fetchPrice(
  address: string,
  { item, customer, request }: PriceRequest,
  { from, attempt, signal }: Caller,
): Promise<number> {
  const headers = {
    authorization: `Bearer key-of-${customer}`,
    "x-request": request,
    "x-from": from,
    "x-attempt": String(attempt),
  };
  const response = await fetch(`${address}/prices/${item}`, { headers, signal });
  const body = (await response.json()) as { readonly price: number; readonly error?: string };
  if (response.ok) return body.price;
  const error = new Error(`${response.status} ${body.error}`);
  throw Object.assign(error, { status: response.status, headers: response.headers });
}
