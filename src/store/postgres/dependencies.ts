// The parts of a store: the pool, the database, the names under which processes meet.
import type pg from "pg";
import { realSystem } from "../../system/real.ts";
import { type Context, NOW, NOW_IN_TURN } from "./context.ts";
import { BOUNDS, type PostgresDatabase, openDatabase, SEARCH_PATH, type PostgresStatement } from "./driver.ts";
import { loadPg } from "./load-pg.ts";
import { type Floors, openFloors } from "./floors.ts";
import { listenFirst } from "./protocol-check.ts";
import { CONNECT_MS } from "./live-connections.ts";
import { openLaneNumbers } from "./lane-numbers.ts";
import { type OpenClaims, trackClaims } from "./open-claims.ts";
import type { Migrations } from "./migrate.ts";
import { type PostgresAddress, type PostgresOptions, readPostgresAddress } from "./address.ts";
import { MIGRATIONS } from "./schema.ts";
import { openWaker, type WakeNames, type Waker, wakeNames } from "./wake.ts";

/** Options for tests: a clock that they control, pools that they keep, the schema of another release. */
export interface PostgresSurroundings {
  readonly clock?: () => number;
  /** Makes the pools of the store; default new ones. */
  readonly openPool?: OpenPool;
  /** Default those of this release. */
  readonly migrations?: Migrations;
}

/** Makes a pool of connections with this config, `max` at most. */
export type OpenPool = (config: pg.ClientConfig | null, max: number) => pg.Pool;

/** Everything that verbs and listeners need. */
export interface PostgresDependencies extends Context {
  readonly place: PostgresAddress;
  /** The config of our own connections; null where the pool does not show it. */
  readonly config: pg.ClientConfig | null;
  /** The same for another thread, which takes only plain data; null where it cannot be passed. */
  readonly threadConfig: pg.ClientConfig | null;
  /** Our own connections can be made, and the server's clock is used. */
  readonly live: boolean;
  /** Statements are prepared, and their plans kept. */
  readonly prepares: boolean;
  readonly names: WakeNames;
  readonly waker: Waker;
  readonly openClaims: OpenClaims;
  readonly floors: Floors;
}

/**
 * Statements are prepared once for any values, while tables may be empty; a plan that scans them would be kept when
 * they are full, until the tables are analysed. Compiling plans takes longer than any of ours runs. Where two claims
 * meet, neither may fail because of the role's isolation level; and names must mean the same everywhere.
 */
export const PLANS = `-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c jit=off -c default_transaction_isolation=read\\ committed -c search_path=${SEARCH_PATH}`;

/** The most connections for what people ask; made at the first question. */
const QUESTIONS_MOST = 2;

/** Composes the parts; asks nothing of the server. */
export function openDependencies(options: PostgresOptions, surroundings: PostgresSurroundings): PostgresDependencies {
  const { clock, migrations = MIGRATIONS, openPool = newPool } = surroundings;
  const place = readPostgresAddress(options);
  const config = configOf(place);
  const pool = place.pool ?? openPool(config, place.maxConnections);
  // On the connections of a user's pool, plans are made for the tables at that time.
  const prepares = !place.pooler && place.pool === null;
  const open = (on: pg.Pool): PostgresDatabase => {
    const owned = place.pool === null;
    const real = openDatabase({ pool: on, owned, direct: prepares, system: realSystem, place: place.shown });
    return clock ? withClock(real, clock) : real;
  };
  const db = open(pool);
  const questions = place.pool ? db : open(openPool(forQuestions(config, place.pooler), QUESTIONS_MOST));
  const s = place.schema;
  const names = wakeNames(s);
  const live = config !== null && !clock;
  const own = { lanes: openLaneNumbers(db, s), waker: openWaker(names), openClaims: trackClaims() };
  // A clock that stands still would keep floors forever.
  const floors = clock ? openFloors(realSystem, Number.POSITIVE_INFINITY) : openFloors(realSystem);
  const ways = { place, config, threadConfig: config && plain(config), live, prepares, names };
  return { db, questions, s, migrations, ...ways, ...own, floors };
}

/**
 * Questions want the first rows in the order of an index. Before the first ANALYZE, and right after a crash, the planner
 * takes large tables for small ones and would rather read and sort all of them.
 */
const FIRST_ROWS = ["bitmapscan", "hashjoin", "mergejoin", "sort", "incremental_sort"]
  .map((way) => `-c enable_${way}=off`)
  .join(" ");
/** Each is planned for its own values: how far it looks is one of them. */
const EACH_ANEW = "-c plan_cache_mode=force_custom_plan";
/** A question takes no processor from workers beyond its own: to start further processes costs more than any question. */
const ALONE = "-c max_parallel_workers_per_gather=0";

function forQuestions(config: pg.ClientConfig | null, pooler: boolean): pg.ClientConfig | null {
  if (config === null || pooler) return config;
  return { ...config, options: `${config.options ?? ""} ${FIRST_ROWS} ${EACH_ANEW} ${ALONE}` };
}

/** The config of our own connections; null where a pool does not show it. */
function configOf({ url, pool, tls, pooler, options: asked }: PostgresAddress): pg.ClientConfig | null {
  const bounds = { connectionTimeoutMillis: CONNECT_MS, keepAlive: true, application_name: "redrive" };
  // Of two settings that differ, the server takes the last.
  const settings = (pooler ? [asked] : [BOUNDS, asked, PLANS]).filter(Boolean).join(" ");
  if (url !== null)
    return { connectionString: url, ...(settings && { options: settings }), ...bounds, ...(tls && { ssl: true }) };
  const options = (pool as unknown as { readonly options?: Record<string, unknown> }).options;
  if (!options) return null;
  // A pool hides the password from code that lists its options.
  const { password, stream, ssl } = options as pg.ClientConfig;
  const listed = Object.entries(options).filter(([, value]) => isPlain(value));
  const hidden = { ...(password && { password }), ...(stream && { stream }), ...(ssl && { ssl }) };
  return { ...Object.fromEntries(listed), ...hidden, ...bounds };
}

const isPlain = (value: unknown): boolean => ["string", "number", "boolean"].includes(typeof value);

/** The part that can be passed to another thread. Not a password from a function: that is asked for and sent later. */
function plain({ password, stream, ssl, ...rest }: pg.ClientConfig): pg.ClientConfig | null {
  if (stream) return null;
  const known = { ...rest, ...(typeof password === "string" && { password }) };
  if (typeof ssl !== "object") return { ...known, ...(ssl !== undefined && { ssl }) };
  // A pool hides the key like the password.
  const { key } = ssl;
  try {
    return { ...known, ssl: structuredClone(key === undefined ? ssl : { ...ssl, key }) };
  } catch {
    return null;
  }
}

/** A pool of new connections. */
export const newPool: OpenPool = (config, max) => {
  const stream = listenFirst as unknown as NonNullable<pg.ClientConfig["stream"]>;
  return new (loadPg().Pool)({ ...config, stream, max, idleTimeoutMillis: 30_000 });
};

/** A database whose time is that of a clock. */
function withClock(db: PostgresDatabase, clock: () => number): PostgresDatabase {
  const at = ({ text }: PostgresStatement): PostgresStatement => ({
    text: text.replaceAll(NOW, `${clock()}::bigint`).replaceAll(NOW_IN_TURN, `${clock()}::bigint`),
  });
  return {
    ask: (statement, ...values) => db.ask(at(statement), ...values),
    together: (work, ...patience) =>
      db.together((ask) => work((statement, ...values) => ask(at(statement), ...values)), ...patience),
    close: () => db.close(),
  };
}
