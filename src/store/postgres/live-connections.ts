// Connections of a pool: how one is taken, for how long it is waited for, and which of them there is reason to think dead.
import type pg from "pg";
import { RedriveError } from "../../core/errors.ts";
import type { System } from "../../system/system.ts";

/** How long a connection is waited for, made or free. */
export const CONNECT_MS = 5_000;
/** The pool's own patience ends first where it has some: it knows what it waited for. */
const GRACE_MS = 100;
const NO_CONNECTION = "no connection in time";
/** A connection that has answered this long ago is well. */
const LATELY_MS = 1_000;

/** Listens to errors that somebody else hears of too. */
export const ignore = (): void => undefined;

/** Which connections of a pool have answered lately. */
export interface LiveConnections {
  /** A connection of which there is no reason to think that it is dead. */
  connect(): Promise<pg.PoolClient>;
  /** A connection goes back; without an answer, it is not used again. */
  release(client: pg.PoolClient, hasAnswered: boolean): void;
  /** A connection has not answered at all for as long as we wait. */
  nothing(): void;
  close(): void;
}

/**
 * Watches for networks that forget connections without a word. Where one connection did not answer, the idle ones of the
 * pool may be dead too, and to wait for each of them in turn would take minutes: whichever has not answered lately is
 * replaced; also those that answered after the question was asked and before the network forgot them.
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
  /** True if others have all connections: nobody waits for a new one, nor do we for the server on one of ours. */
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
 * Takes a connection from the pool, with a listener for its errors: the query under way hears of them too, but without a
 * listener they would end the process. By callback, because the packet that makes a connection ready may go on with the
 * server's last words, and whoever awaits would begin to listen too late.
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

/** True if it was waited for a place in the pool; the pool says so by these words alone. */
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
 * Lets a pool of the user's give up connections that the server never answers, where it is not told when: each would keep
 * its place for good. Not by the pool's own option, which would also bound how long others wait for a free connection.
 */
export function boundConnecting(pool: pg.Pool): void {
  const { Client, options } = pool as unknown as { readonly Client?: MakeClient; readonly options?: pg.PoolConfig };
  if (typeof Client !== "function" || options?.connectionTimeoutMillis || bounded.has(pool)) return;
  bounded.add(pool);
  const bound = { connectionTimeoutMillis: { value: CONNECT_MS, enumerable: true } };
  class BoundClient extends Client {
    constructor(config: object) {
      // A pool hides its password from whoever lists its options.
      super(Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(config), ...bound }));
    }
  }
  Object.assign(pool, { Client: BoundClient });
}
