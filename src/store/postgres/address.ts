// The address of a Postgres store: server, schema, and how safely it is reached. Read from a URL or from options; an
// unsafe or impossible address is refused with the reason.
import type pg from "pg";
import { RedriveError } from "../../core/errors.ts";
import { didYouMean, invalid, namesOf, parseOptions } from "../../core/options.ts";
import { redactText } from "../../core/redact.ts";
import type { StoreAddress } from "../inspection.ts";
import type { StoreDescription } from "../store.ts";
import { loadPg } from "./load-pg.ts";

/** Options of a Postgres store. */
export interface PostgresOptions {
  /**
   * `postgres://user:password@host:port/database`; give this or a pool. Missing parts come from `PGHOST`, `PGUSER` and
   * the like.
   */
  readonly url?: string;
  /** Your own pool of `pg`, which you end; give this or a URL. */
  readonly pool?: pg.Pool;
  /** The schema that holds the tables: 1 to 48 small letters, digits or `_`, not a digit first; default `redrive`. */
  readonly schema?: string;
  /** Most connections, with a URL, 1 to 1,000; default 10. */
  readonly maxConnections?: number;
  /**
   * True if a pooler in transaction mode (PgBouncer) is in between: no statements are prepared, and workers poll
   * instead of being woken. Default false.
   */
  readonly pooler?: boolean;
}

/** The checked options, with the parts of the URL. */
export interface PostgresAddress {
  readonly url: string | null;
  readonly pool: pg.Pool | null;
  readonly schema: string;
  readonly maxConnections: number;
  readonly pooler: boolean;
  /** True unless the server is on this host: then the connection is encrypted and the server's certificate checked. */
  readonly tls: boolean;
  /** Settings from the URL that `pg` sends to the server with every connection: `-c name=value`. */
  readonly options: string | null;
  /** For messages, without the password. */
  readonly shown: string;
}

const FIELDS = namesOf<PostgresOptions>()(["url", "pool", "schema", "maxConnections", "pooler"]);
const SCHEMA = /^[a-z_][a-z0-9_]{0,47}$/;
/** Names that Postgres accepts only in quotes, of all its versions that we know. */
const SQL_WORDS: ReadonlySet<string> = new Set(
  (
    "all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation " +
    "column concurrently constraint create cross current_catalog current_date current_role current_schema current_time " +
    "current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze " +
    "from full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit " +
    "localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references " +
    "returning right select session_user similar some symmetric system_user table tablesample then to trailing true " +
    "union unique user using variadic verbose when where window with"
  ).split(" "),
);
const LOOPBACK: ReadonlySet<string> = new Set(["", "localhost", "127.0.0.1", "[::1]", "::1"]);
/** Our own parameters of the URL; the rest belongs to the driver. */
const OWN_PARTS = ["schema", "pooler", "insecure"] as const;

/** True for the URL of a Postgres server, valid or not. */
export function isPostgresUrl(url: string): boolean {
  return /^postgres(ql)?:/.test(url);
}

/** The description of a store at this address. */
export function describePostgres({ shown, schema }: PostgresAddress): StoreDescription {
  return { name: "postgres", shown: `${shown} (schema ${schema})`, file: null, notice: null };
}

/** The checked address of a URL; null for the URL of another kind of store. */
export function postgresStoreAddress(url: string): StoreAddress | null {
  if (!isPostgresUrl(url)) return null;
  const description = describePostgres(readPostgresAddress({ url }));
  return {
    ...description,
    url,
    inspect: async () => (await import("./inspection.ts")).inspectPostgres(url, description.shown),
  };
}

/** Checks the options. */
export function readPostgresAddress(options: PostgresOptions): PostgresAddress {
  const given = parseOptions(options, FIELDS, "postgres") as PostgresOptions;
  const { pool = null } = given;
  if ((given.url === undefined) === (pool === null))
    throw invalid("postgres", "a url or a pool", given.url === undefined ? "neither" : "both", "give one of them");
  if (pool !== null && (typeof pool.query !== "function" || typeof pool.connect !== "function"))
    throw invalid("pool", "a pool of pg", typeof pool, "pass what new pg.Pool gives, or a url");
  if (![undefined, true, false].includes(given.pooler))
    throw invalid("pooler", "true or false", given.pooler, "use one of these");
  const part = given.url === undefined ? null : readUrl(given.url);
  const schema = given.schema ?? part?.schema ?? "redrive";
  if (!SCHEMA.test(schema))
    throw invalid("schema", "1 to 48 small letters, digits or _, no digit first", schema, "choose another name");
  if (schema.startsWith("pg_") || schema === "information_schema")
    throw invalid("schema", "a name that Postgres does not use itself", schema, "choose another name");
  if (SQL_WORDS.has(schema))
    throw invalid("schema", "a name that is not an SQL keyword", schema, "choose another name");
  const maxConnections = given.maxConnections ?? 10;
  if (!Number.isSafeInteger(maxConnections) || maxConnections < 1 || maxConnections > 1_000)
    throw invalid("maxConnections", "a whole number from 1 to 1000", maxConnections, "change it");
  return {
    url: part?.url ?? null,
    pool,
    schema,
    maxConnections,
    pooler: given.pooler ?? part?.pooler ?? false,
    tls: part?.tls ?? false,
    options: part?.options ?? null,
    shown: part?.shown ?? "the pool's server",
  };
}

interface UrlParts {
  readonly url: string;
  readonly schema: string | null;
  readonly pooler: boolean;
  readonly tls: boolean;
  readonly options: string | null;
  readonly shown: string;
}

function readUrl(text: string): UrlParts {
  const url = parsed(text);
  // The driver takes the last of several values, and a host parameter before the host of the address.
  const last = (name: string): string | null => url.searchParams.getAll(name).at(-1) ?? null;
  const schema = last("schema");
  const pooler = yesOrNo("pooler", last("pooler"));
  const insecure = yesOrNo("insecure", last("insecure"));
  const [mode, ssl, options] = [last("sslmode"), last("ssl"), last("options")];
  for (const name of OWN_PARTS) url.searchParams.delete(name);
  for (const name of url.searchParams.keys()) {
    const remedy = didYouMean(name, OWN_PARTS);
    if (remedy) throw invalid("store", "schema, pooler, insecure or a parameter of pg in the URL", name, remedy);
  }
  // The driver would send these instead of ours.
  url.searchParams.delete("options");
  const { host, port } = completed(url, text, last);
  const local = LOOPBACK.has(host) || /^(\/|%2f)/i.test(host);
  const safe = [null, "verify-full", "verify-ca"].includes(mode) && [null, "true", "1"].includes(ssl);
  if (!local && !safe && !insecure) {
    const said = mode === null ? `ssl=${ssl}` : `sslmode=${mode}`;
    const message = `store: ${said} to ${host} would not check who answers. Use sslmode=verify-full, or add insecure=true to the URL if you accept that.`;
    throw new RedriveError("config_refused", message);
  }
  return {
    url: url.href,
    schema,
    pooler,
    tls: !local && mode === null && ssl === null && !insecure,
    options,
    shown: `${host}:${port}${url.pathname}`,
  };
}

/** A login without a host, as in URLs that name the folder of a socket after it. */
const HOSTLESS = /^(postgres(?:ql)?:\/\/[^@/?#]*@)(?=[/?#]|$)/;

function parsed(text: string): URL {
  const hosted = typeof text === "string" ? text.replace(HOSTLESS, "$1localhost") : text;
  const url = /^postgres(ql)?:\/\//.test(hosted) && URL.canParse(hosted) ? new URL(hosted) : null;
  const isWhole = url && isDecodable(`${url.username}${url.password}${url.host}${url.pathname}`);
  // A login after a third slash would be taken for the name of the database, and shown.
  if (isWhole && !url.pathname.includes("@")) return url;
  // A password may contain anything, and this URL does not even tell where it ends.
  const shown = typeof text === "string" ? redactText(text.replace(/^([a-z]+:[\\/]*).*@/is, "$1***@")) : text;
  throw invalid("store", "postgres://USER:PASSWORD@HOST:PORT/DATABASE", shown, "check the URL");
}

/** False where a % does not begin an encoded character. */
function isDecodable(text: string): boolean {
  try {
    return decodeURIComponent(text) !== null;
  } catch {
    return false;
  }
}

/**
 * The server that the driver will connect to. Missing parts of the URL come from the driver's defaults, which all
 * Postgres programs share: `PGHOST`, `PGPORT`, `PGDATABASE`. They are written into the URL, so that every connection
 * goes to the server that was checked.
 */
function completed(
  url: URL,
  text: string,
  last: (name: string) => string | null,
): { readonly host: string; readonly port: string } {
  const host = last("host") || (HOSTLESS.test(text) ? "" : url.hostname);
  const port = last("port") || url.port;
  const database = url.pathname.slice(1);
  if (host && port && database) return { host, port };
  const user = url.username && { user: decodeURIComponent(url.username) };
  const driver = new (loadPg().Client)({ ...(host && { host }), ...user });
  if (!host) url.searchParams.set("host", driver.host);
  if (!port) url.searchParams.set("port", String(driver.port));
  if (!database && driver.database) url.pathname = `/${encodeURIComponent(driver.database)}`;
  return { host: host || driver.host, port: port || String(driver.port) };
}

function yesOrNo(name: string, value: string | null): boolean {
  if (value === null || value === "true" || value === "false") return value === "true";
  throw invalid(name, "true or false in the store URL", value, "use one of these");
}
