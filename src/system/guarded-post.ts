// Sends JSON to an address from the configuration, guarded: https only, the name is resolved once, every address it has
// is checked, the connection goes to a checked one, and no redirect is followed. A name that changes its address between
// check and connection, or a server that redirects, leads nowhere.
import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { request } from "node:https";
import { type BlockList, isIP, type LookupFunction } from "node:net";
import { textOf } from "../core/failure.ts";
import { isAllowed } from "./addresses.ts";

/** What to send, and where. */
export interface GuardedPost {
  readonly url: URL;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Addresses that are allowed besides public ones. */
  readonly allow: BlockList;
  /** How long all of it may take. */
  readonly withinMs: number;
  /** Further authorities that certificates may be signed by; default those of Node. */
  readonly ca?: string;
  /** Finds the addresses of a name; default that of the system. */
  readonly resolve?: (host: string) => Promise<readonly LookupAddress[]>;
}

/** Most bytes of the answer that are read; the rest is cut off with the connection. */
const ANSWER_MOST = 65_536;

/** Null if the server answered with 2xx, else what went wrong, as a sentence without the path of the URL. */
export async function guardedPost(post: GuardedPost): Promise<string | null> {
  const { url, allow, withinMs, resolve = (host) => lookup(host, { all: true }) } = post;
  if (url.protocol !== "https:") return `expected https; got ${url.protocol.slice(0, -1)}`;
  const signal = AbortSignal.timeout(withinMs);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  try {
    const known = isIP(host);
    const addresses = known === 0 ? await within(signal, resolve(host)) : [{ address: host, family: known }];
    const closed = addresses.find(({ address }) => !isAllowed(address, allow));
    if (addresses.length === 0) return `${host} has no address`;
    if (closed)
      return `${host} leads to ${closed.address}, which is not a public address; name it in \`allow\` if it is meant`;
    return await send(post, addresses, signal);
  } catch (error) {
    return signal.aborted ? `${host} did not answer within ${withinMs} ms` : textOf(error);
  }
}

function within<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(new Error("too slow")), { once: true });
    work.then(resolve, reject);
  });
}

function send(
  { url, body, headers, ca }: GuardedPost,
  addresses: readonly LookupAddress[],
  signal: AbortSignal,
): Promise<string | null> {
  // Node asks this instead of the system: the connection goes to an address that was checked.
  const checked: LookupFunction = (_host, { all }, callback) => {
    const [first] = addresses as [LookupAddress];
    if (all) callback(null, [...addresses]);
    else callback(null, first.address, first.family);
  };
  const length = String(Buffer.byteLength(body));
  const options = {
    method: "POST",
    lookup: checked,
    agent: false as const,
    signal,
    headers: { "content-type": "application/json", "content-length": length, ...headers },
    maxHeaderSize: 16_384,
    ...(ca !== undefined && { ca }),
  };
  return new Promise((resolve, reject) => {
    const sent = request(url, options, (answer) => {
      const { statusCode = 0 } = answer;
      const isDone = statusCode >= 200 && statusCode < 300;
      const isRedirect = statusCode >= 300 && statusCode < 400;
      const end = (): void =>
        resolve(isDone ? null : `it answered ${statusCode}${isRedirect ? "; redirects are not followed" : ""}`);
      let bytes = 0;
      answer.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= ANSWER_MOST) return;
        end();
        sent.destroy();
      });
      answer.on("end", end);
      answer.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
