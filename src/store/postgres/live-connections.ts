// Connections of a pool: how one is taken, how long to wait for it, and which ones are probably dead.
import type pg from "pg";
import { RedriveError } from "../../core/errors.ts";
import type { System } from "../../system/system.ts";

/** How long to wait for a connection, new or free. */
export const CONNECT_MS = 5_000;
/** The pool's own timeout, where it has one, ends first: it knows what it waited for. */
const GRACE_MS = 100;
const NO_CONNECTION = "no connection in time";
/** A connection that answered within this time is healthy. */
const LATELY_MS = 1_000;

/** A listener for errors that other code handles too. */
export const ignore = (): void => undefined;

/** Tracks which connections of a pool have answered lately. */
export interface LiveConnections {
  /** A connection that is probably alive. */
  connect(): Promise<pg.PoolClient>;
  /** Returns a connection; one without an answer is not used again. */
  release(client: pg.PoolClient, hasAnswered: boolean): void;
  /** A connection has not answered at all within our limit. */
  nothing(): void;
  close(): void;
}

/**
 * Handles networks that silently drop connections. If one connection did not answer, the idle ones of the pool may be
 * dead too, and waiting for each of them in turn would take minutes: every connection without a recent answer is
 * replaced, also one that answered between the question and the drop.
 */
export function openLiveConnections(pool: pg.Pool, system: Pick<System, "monotonic" | "after">): LiveConnections {
  const heardAt = new WeakMap<pg.PoolClient, number>();
  let silentSince = Number.NEGATIVE_INFINITY;
  let [lastHeard, lastMissed, held] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY, 0];
  const from = (client: pg.PoolClient): void => {
    lastHeard = system.monotonic();
    heardAt.set(client, lastHeard);
  };
  pool.on("connect", from);
  const patienceMs = pool.options?.connectionTimeoutMillis || CONNECT_MS;
  /** True if others use all connections: then nothing waits for a new one, nor for the server on one of ours. */
  const isBusy = (since: number): boolean =>
    pool.totalCount >= (pool.options?.max ?? Number.POSITIVE_INFINITY) &&
    lastHeard >= lastMissed &&
    (held === 0 || lastHeard >= since);
  const next = async (): Promise<pg.PoolClient> => {
    const since = system.monotonic();
    try {
      return await take(pool, patienceMs, system);
    } catch (error) {
      if (isWait(error) && isBusy(since)) throw allInUse(pool, patienceMs, error);
      lastMissed = system.monotonic();
      throw error;
    }
  };
  return {
    async connect() {
      for (;;) {
        const client = await next();
        if ((heardAt.get(client) ?? Number.NEGATIVE_INFINITY) >= silentSince) {
          held += 1;
          return client;
        }
        client.release(true);
      }
    },
    release(client, hasAnswered) {
      held -= 1;
      if (hasAnswered) from(client);
      client.off("error", ignore);
      client.release(!hasAnswered);
    },
    nothing() {
      lastMissed = system.monotonic();
      silentSince = lastMissed - LATELY_MS;
    },
    close: () => void pool.off("connect", from),
  };
}

/**
 * Takes a connection from the pool, with a listener for its errors: the query under way gets them too, but without a
 * listener they would end the process. With a callback, because the packet that makes a connection ready may also
 * contain the server's last message, and a listener added after an await would miss it.
 */
function take(pool: pg.Pool, patienceMs: number, system: Pick<System, "after">): Promise<pg.PoolClient> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    const stopWaiting = system.after(patienceMs + GRACE_MS, () => {
      isOver = true;
      reject(new Error(NO_CONNECTION));
    });
    pool.connect((error, client) => {
      stopWaiting();
      if (!client) return reject(error ?? new Error("The pool gave no connection."));
      if (isOver) return client.release();
      client.on("error", ignore);
      resolve(client);
    });
  });
}

/** True if the wait was for a place in the pool; the pool tells so only by these texts. */
function isWait(error: unknown): boolean {
  return error instanceof Error && [NO_CONNECTION, "timeout exceeded when trying to connect"].includes(error.message);
}

function allInUse({ totalCount }: pg.Pool, patienceMs: number, cause: unknown): RedriveError {
  const all = totalCount === 1 ? "its only one is" : `all ${totalCount} are`;
  const message = `No connection of the pool was free for ${patienceMs / 1_000} s: ${all} in use. Raise max of the pool, or pass tx where a transaction of yours has one.`;
  return new RedriveError("store_unavailable", message, { cause });
}

type MakeClient = new (config: object) => object;
const bounded = new WeakSet<pg.Pool>();

/**
 * Lets a user's pool give up connections that the server never answers, where it has no timeout: each would occupy its
 * place permanently. Not by the pool's own option, which would also limit how long others wait for a free connection.
 */
export function boundConnecting(pool: pg.Pool): void {
  const { Client, options } = pool as unknown as { readonly Client?: MakeClient; readonly options?: pg.PoolConfig };
  if (typeof Client !== "function" || options?.connectionTimeoutMillis || bounded.has(pool)) return;
  bounded.add(pool);
  const bound = { connectionTimeoutMillis: { value: CONNECT_MS, enumerable: true } };
  class BoundClient extends Client {
    constructor(config: object) {
      // A pool hides its password from code that lists its options.
      super(Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(config), ...bound }));
    }
  }
  Object.assign(pool, { Client: BoundClient });
}
