// What a store is put together from: the pool, the way to ask, the names that processes meet under.
import type pg from "pg";
import { realSystem } from "../../system/real.ts";
import { type Context, NOW } from "./context.ts";
import { BOUNDS, type PostgresDatabase, loadPg, openDatabase, SEARCH_PATH, type PostgresStatement } from "./driver.ts";
import { type Floors, openFloors } from "./floors.ts";
import { listenFirst } from "./protocol-check.ts";
import { CONNECT_MS } from "./live-connections.ts";
import { openLaneNumbers } from "./lane-numbers.ts";
import { type OpenClaims, trackClaims } from "./open-claims.ts";
import type { Migrations } from "./migrate.ts";
import { type PostgresAddress, type PostgresOptions, readPostgresAddress } from "./address.ts";
import { MIGRATIONS } from "./schema.ts";
import { openWaker, type WakeNames, type Waker, wakeNames } from "./wake.ts";

/** How the store is opened in tests: a clock in their hands, the schema of another release. */
export interface PostgresSurroundings {
  readonly clock?: () => number;
  /** Default those of this release. */
  readonly migrations?: Migrations;
}

/** Everything that verbs and listeners are made of. */
export interface PostgresDependencies extends Context {
  readonly place: PostgresAddress;
  /** What a connection of our own is made with; null where the pool does not say. */
  readonly config: pg.ClientConfig | null;
  /** The same for another thread, which takes only plain data; null where that does not say how to connect. */
  readonly threadConfig: pg.ClientConfig | null;
  /** Connections of our own can be made, and time is the server's. */
  readonly live: boolean;
  /** Statements are prepared, and their plans kept. */
  readonly prepares: boolean;
  readonly names: WakeNames;
  readonly waker: Waker;
  readonly ledger: OpenClaims;
  readonly floors: Floors;
}

/**
 * Statements are prepared once for any values, while tables may be empty; a plan that scans them would be kept when they
 * are full, until somebody analyses them. Compiling plans takes longer than any of ours runs. Where two claims meet,
 * neither is to fail for the role's isolation; and names mean what they mean everywhere.
 */
export const PLANS = `-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c jit=off -c default_transaction_isolation=read\\ committed -c search_path=${SEARCH_PATH}`;

/** Puts the parts together; nothing is asked of the server. */
export function openDependencies(options: PostgresOptions, surroundings: PostgresSurroundings): PostgresDependencies {
  const { clock, migrations = MIGRATIONS } = surroundings;
  const place = readPostgresAddress(options);
  const config = configOf(place);
  const pool = place.pool ?? openPool(config, place.maxConnections);
  // On connections of somebody else's pool, plans are made anew for tables as they are.
  const prepares = !place.pooler && place.pool === null;
  const real = openDatabase({
    pool,
    owned: place.pool === null,
    direct: prepares,
    system: realSystem,
    place: place.shown,
  });
  const db = clock ? withClock(real, clock) : real;
  const s = place.schema;
  const names = wakeNames(s);
  const live = config !== null && !clock;
  const own = { lanes: openLaneNumbers(db, s), waker: openWaker(names), ledger: trackClaims() };
  // A clock that stands still would keep floors for ever.
  const floors = clock ? openFloors(realSystem, Number.POSITIVE_INFINITY) : openFloors(realSystem);
  const ways = { place, config, threadConfig: config && plain(config), live, prepares, names };
  return { db, s, migrations, ...ways, ...own, floors };
}

/** What a connection of our own is made with; null where a pool does not say. */
function configOf({ url, pool, tls, pooler, options: asked }: PostgresAddress): pg.ClientConfig | null {
  const bounds = { connectionTimeoutMillis: CONNECT_MS, keepAlive: true, application_name: "redrive" };
  // Of two that differ, the server takes the last.
  const settings = (pooler ? [asked] : [BOUNDS, asked, PLANS]).filter(Boolean).join(" ");
  if (url !== null)
    return { connectionString: url, ...(settings && { options: settings }), ...bounds, ...(tls && { ssl: true }) };
  const options = (pool as unknown as { readonly options?: Record<string, unknown> }).options;
  if (!options) return null;
  // A pool hides the password from whoever lists its options.
  const { password, stream, ssl } = options as pg.ClientConfig;
  const listed = Object.entries(options).filter(([, value]) => isPlain(value));
  const hidden = { ...(password && { password }), ...(stream && { stream }), ...(ssl && { ssl }) };
  return { ...Object.fromEntries(listed), ...hidden, ...bounds };
}

const isPlain = (value: unknown): boolean => ["string", "number", "boolean"].includes(typeof value);

/** What can go to another thread. Not a password that a function gives: that one is asked for, and follows. */
function plain({ password, stream, ssl, ...rest }: pg.ClientConfig): pg.ClientConfig | null {
  if (stream) return null;
  const known = { ...rest, ...(typeof password === "string" && { password }) };
  if (typeof ssl !== "object") return { ...known, ...(ssl !== undefined && { ssl }) };
  // A pool hides the key as it hides the password.
  const { key } = ssl;
  try {
    return { ...known, ssl: structuredClone(key === undefined ? ssl : { ...ssl, key }) };
  } catch {
    return null;
  }
}

function openPool(config: pg.ClientConfig | null, max: number): pg.Pool {
  const stream = listenFirst as unknown as NonNullable<pg.ClientConfig["stream"]>;
  return new (loadPg().Pool)({ ...config, stream, max, idleTimeoutMillis: 30_000 });
}

/** A database on which it is as late as a clock says. */
function withClock(db: PostgresDatabase, clock: () => number): PostgresDatabase {
  const at = ({ text }: PostgresStatement): PostgresStatement => ({ text: text.replaceAll(NOW, `${clock()}::bigint`) });
  return {
    ask: (statement, ...values) => db.ask(at(statement), ...values),
    together: (work, ...patience) =>
      db.together((ask) => work((statement, ...values) => ask(at(statement), ...values)), ...patience),
    close: () => db.close(),
  };
}
