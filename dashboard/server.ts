// The server, seen from the page: the typed client, who is signed in, and since when answers are missing.
import { signal } from "@preact/signals";
import { type Client, createClient, RedriveHttpError, type WireSession } from "../src/http/client.ts";
import { ahead } from "./format.ts";

/** Who is signed in; null until the server has said it. */
export const session = signal<WireSession | null>(null);
/** When the last answer came, by the browser's clock. */
export const heardAt = signal(Date.now());
/** What the last call failed of; null while answers come. */
export const trouble = signal<string | null>(null);

const SHORT = new Set([502, 503, 504]);

/** Everything beside this page is reached from the folder it lies in, so that any prefix works. */
export const base = new URL(".", location.href.split("#")[0]).href;

const listened: typeof fetch = async (input, init) => {
  try {
    const response = await fetch(input, init);
    if (SHORT.has(response.status)) trouble.value = "The store does not answer.";
    else {
      trouble.value = null;
      heardAt.value = Date.now();
    }
    if (response.status === 401 && session.value?.role) session.value = { ...session.value, actor: null, role: null };
    return response;
  } catch (error) {
    if (!init?.signal?.aborted) trouble.value = "The server does not answer.";
    throw error;
  }
};

/** The API. */
export const api: Client = createClient({ url: base, fetch: listened });

/** A payload byte for byte, and what it is told apart by. */
export interface PayloadText {
  readonly text: string;
  readonly etag: string;
}

/** Reads a payload. The client gives its text alone; a change must name what it saw. */
export async function payloadOf(id: string): Promise<PayloadText> {
  let etag = "";
  const noting: typeof fetch = async (input, init) => {
    const response = await listened(input, init);
    etag = response.headers.get("etag") ?? "";
    return response;
  };
  const text = await createClient({ url: base, fetch: noting }).jobs.payload({ id });
  return { text: text as unknown as string, etag };
}

/** Learns who is signed in, and the store's time. */
export function keep(said: WireSession): void {
  session.value = said;
  if (said.now !== null) ahead.value = Date.parse(said.now) - Date.now();
}

/** Asks who is signed in; a code in the address is swapped for a cookie first, and leaves the address. */
export async function begin(): Promise<string | null> {
  const [, code] = /^#code=([\w-]+)$/.exec(location.hash) ?? [];
  let problem: string | null = null;
  if (code !== undefined) {
    history.replaceState(null, "", `${location.pathname}#/`);
    dispatchEvent(new HashChangeEvent("hashchange"));
    try {
      keep(await api.session.start({ code }));
      return null;
    } catch (error) {
      problem = saidOf(error);
    }
  }
  try {
    keep(await api.session.get());
    return session.value?.role ? null : problem;
  } catch (error) {
    return saidOf(error);
  }
}

const RANKS = ["viewer", "operator", "admin"];

/** Whether the person who is signed in may do what needs this role. */
export function may(role: "viewer" | "operator" | "admin"): boolean {
  return RANKS.indexOf(session.value?.role ?? "") >= RANKS.indexOf(role);
}

/** What an error says, with its hint. */
export function saidOf(error: unknown): string {
  if (error instanceof RedriveHttpError) return error.hint ? `${error.message} ${error.hint}` : error.message;
  return error instanceof TypeError ? "The server does not answer." : String((error as Error)?.message ?? error);
}
