// Connections of a pool: how one is taken, and which of them there is reason to think dead.
import type pg from "pg";

/** A connection that has answered this long ago is well. */
const LATELY_MS = 1_000;

/** Listens to errors that somebody else hears of too. */
export const ignore = (): void => undefined;

/**
 * Takes a connection from the pool, with a listener for its errors: the query under way hears of them too, but without a
 * listener they would end the process. By callback, because the packet that makes a connection ready may go on with the
 * server's last words, and whoever awaits would begin to listen too late.
 */
function take(pool: pg.Pool): Promise<pg.PoolClient> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (!client) return reject(error ?? new Error("The pool gave no connection."));
      client.on("error", ignore);
      resolve(client);
    });
  });
}

/** Which connections of a pool have answered lately. */
export interface Hearing {
  /** A connection of which there is no reason to think that it is dead. */
  connect(): Promise<pg.PoolClient>;
  /** This connection has answered. */
  from(client: pg.PoolClient): void;
  /** A connection has not answered at all for as long as we wait. */
  nothing(): void;
  close(): void;
}

/**
 * Watches for networks that forget connections without a word. Where one connection did not answer, the idle ones of the
 * pool may be dead too, and to wait for each of them in turn would take minutes: whichever has not answered lately is
 * replaced; also those that answered after the question was asked and before the network forgot them.
 */
export function openHearing(pool: pg.Pool, now: () => number): Hearing {
  const heardAt = new WeakMap<pg.PoolClient, number>();
  let silentSince = Number.NEGATIVE_INFINITY;
  const from = (client: pg.PoolClient): void => void heardAt.set(client, now());
  pool.on("connect", from);
  return {
    from,
    async connect() {
      for (;;) {
        const client = await take(pool);
        if ((heardAt.get(client) ?? Number.NEGATIVE_INFINITY) >= silentSince) return client;
        client.release(true);
      }
    },
    nothing() {
      silentSince = now() - LATELY_MS;
    },
    close: () => void pool.off("connect", from),
  };
}
