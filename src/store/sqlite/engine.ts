// The only code that uses the database file. It takes a group of requests, carries them out in one transaction and
// answers each; a group with a failing member is undone and carried out again one by one, so that only that member
// fails. Runs in the store thread, or in the caller's own (inline.ts).
import { isRedriveError, RedriveError } from "../../core/errors.ts";
import { otherOwner } from "../../system/trusted-file.ts";
import { newerNotice } from "../migrations.ts";
import { type Verb, VERBS } from "../verb-facts.ts";
import { causeVerbs, figuresVerb } from "./causes.ts";
import { cellVerbs } from "./cells.ts";
import { controlVerbs } from "./control.ts";
import { deadLetterVerbs } from "./dead-letters.ts";
import { type SqliteDatabase, openDatabase, sqliteCode } from "./driver.ts";
import { eventVerbs } from "./event-log.ts";
import { failureVerbs } from "./failures.ts";
import { groupVerbs } from "./groups.ts";
import { jobVerbs } from "./jobs.ts";
import { openLaneNumbers } from "./lane-numbers.ts";
import { payloadVerbs } from "./payloads.ts";
import { redriveVerbs } from "./redrives.ts";
import { retentionVerbs } from "./retention.ts";
import { checkOwner, findSchema, migrate, openGuard, rollback } from "./migrate.ts";
import { MIGRATIONS } from "./schema.ts";
import { workerVerbs } from "./workers.ts";
import { workVerbs } from "./work.ts";

/** One verb with its arguments, as sent between threads. */
export interface Request {
  readonly verb: Verb;
  readonly args: readonly unknown[];
}

/** The result of a request. */
export type Reply = { readonly value: unknown } | { readonly error: RedriveError };

/** What the engine needs. */
export interface EngineOptions {
  readonly path: string;
  readonly clock: () => number;
  /** Blocks the thread between two attempts to get a lock that another process holds. */
  readonly blockMs: (ms: number) => void;
  readonly random: () => number;
  /** Leaves the sync of each commit to the caller, which must sync the log before it answers. */
  readonly unsynced?: boolean;
  /** A sync of the log has failed: nothing in it counts as safe until all of it is in the database. */
  readonly emptyLog?: boolean;
  /** The connection refuses to write, once the schema is up to date. */
  readonly readOnly?: boolean;
  /** Default those of this release; tests bring others. */
  readonly migrations?: typeof MIGRATIONS;
}

/** An open database file with its verbs. */
export interface Engine {
  /** Carries out requests in order, in one transaction where one of them writes. */
  carryOut(group: readonly Request[]): Reply[];
  /** True if commits are in the log but not yet on disk when they return. */
  readonly unsynced: boolean;
  close(): void;
}

/** How long another process may hold the file before the store counts as unavailable. */
const LOCK_PATIENCE_MS = 5_000;

/** Opens the file and migrates its schema. */
export function openEngine(options: EngineOptions): Engine {
  const db = translated(options.path, () => openDatabase(options.path));
  const retry = lockRetry(options);
  try {
    return translated(options.path, () => prepareEngine(db, retry, options));
  } catch (error) {
    db.close();
    throw error;
  }
}

type Prepared = ReturnType<SqliteDatabase["prepare"]>;
type Begins = [look: Prepared, begin: Prepared, commit: Prepared];
type Retry = <T>(work: () => T) => T;

function prepareEngine(db: SqliteDatabase, retry: Retry, options: EngineOptions): Engine {
  const { migrations = MIGRATIONS } = options;
  for (const step of [checkVersion, checkOwner, configure]) retry(() => step(db));
  retry(() => migrate(db, migrations));
  if (options.emptyLog) retry(() => emptyLog(db));
  const unsynced = options.unsynced === true && leaveSyncing(db);
  const lanes = openLaneNumbers(db, options.clock);
  const verbs = verbsOf(db, lanes, options.clock, migrations.length);
  const guard = openGuard(db, migrations.length);
  if (options.readOnly) db.exec("pragma query_only = on");
  const [look, begin, commit] = ["begin", "begin immediate", "commit"].map((text) => db.prepare(text)) as Begins;
  const one = ({ verb, args }: Request): unknown => (verbs[verb] as (...given: readonly unknown[]) => unknown)(...args);
  const inside = (group: readonly Request[]): Reply[] => {
    try {
      guard();
      const replies = group.map((request) => ({ value: one(request) }));
      commit.run();
      return replies;
    } catch (error) {
      lanes.reset();
      rollback(db);
      throw error;
    }
  };
  const together = (group: readonly Request[]): Reply[] => {
    if (group.every(({ verb }) => VERBS[verb].reads)) {
      // In a transaction too: some answers take several statements, and other processes may write in between.
      return retry(() => {
        look.run();
        return inside(group);
      });
    }
    retry(() => begin.run());
    return inside(group);
  };
  return {
    carryOut(group) {
      try {
        return together(group);
      } catch (error) {
        // A lock or a full disk affects all of them; trying each would only repeat the wait.
        if (group.length === 1 || TRY_AGAIN.has(sqliteCode(error) ?? -1))
          return group.map(() => ({ error: translate(error, options.path) }));
        return group.flatMap((request) => this.carryOut([request]));
      }
    },
    unsynced,
    close() {
      db.close();
    },
  };
}

function verbsOf(db: SqliteDatabase, lanes: ReturnType<typeof openLaneNumbers>, clock: () => number, known: number) {
  return {
    migrate: () => newerNotice(findSchema(db).version, known),
    ...jobVerbs(db, lanes, clock),
    ...workVerbs(db, lanes, clock),
    ...groupVerbs(db, lanes),
    ...workerVerbs(db, clock),
    ...deadLetterVerbs(db),
    ...redriveVerbs(db, clock),
    ...payloadVerbs(db, clock),
    ...failureVerbs(db, clock),
    ...retentionVerbs(db, lanes, clock),
    ...controlVerbs(db, clock),
    ...cellVerbs(db, clock),
    ...eventVerbs(db, clock),
    ...causeVerbs(db, clock),
    ...figuresVerb(db, lanes, clock),
  };
}

function configure(db: SqliteDatabase): void {
  db.exec("pragma synchronous = full; pragma journal_mode = wal");
  db.exec("pragma foreign_keys = on; pragma temp_store = memory; pragma cache_size = -16384");
  db.exec("pragma wal_autocheckpoint = 4000; pragma journal_size_limit = 67108864");
}

/** Ends the syncs inside commits, now that the schema is on disk; false where there is no log to sync instead. */
function leaveSyncing(db: SqliteDatabase): boolean {
  if (db.prepare("pragma journal_mode").all()[0]?.[0] !== "wal") return false;
  db.exec("pragma synchronous = normal");
  return true;
}

/** Copies the log into the database, syncs that, and starts the log again. */
function emptyLog(db: SqliteDatabase): void {
  const [busy] = db.prepare("pragma wal_checkpoint(truncate)").all()[0] ?? [];
  if (busy === 0) return;
  throw new RedriveError(
    "store_unavailable",
    "A sync of the database's log has failed, and another process keeps the log from being restarted. Try again.",
  );
}

/** Refuses a SQLite library whose WAL mode can lose commits. */
export function checkVersion(db: SqliteDatabase): void {
  const text = db.prepare("select sqlite_version()").all()[0]?.[0] as string;
  if (isSoundVersion(text)) return;
  const message =
    `SQLite ${text} has the WAL-reset bug, which can lose committed jobs. Needed is 3.51.3 or newer (or 3.50.7, 3.44.6). ` +
    "Update Node, or better-sqlite3 where it is used.";
  throw new RedriveError("store_unusable", message);
}

/** True for a version of SQLite without the WAL-reset bug. */
export function isSoundVersion(text: string): boolean {
  const [major = 0, minor = 0, patch = 0] = text.split(".").map(Number);
  if (major !== 3) return major > 3;
  if (minor === 50) return patch >= 7;
  if (minor === 44) return patch >= 6;
  return minor > 51 || (minor === 51 && patch >= 3);
}

/** Retries while another process holds the lock; a short random wait each time keeps writers from moving in step. */
function lockRetry({ blockMs, random }: EngineOptions): Retry {
  return (work) => {
    let waited = 0;
    for (let round = 0; ; round++) {
      try {
        return work();
      } catch (error) {
        const code = sqliteCode(error);
        if ((code !== 5 && code !== 6) || waited >= LOCK_PATIENCE_MS) throw error;
        const wait = Math.min(20, 0.2 + round * 0.2) * (0.5 + random());
        blockMs(wait);
        waited += wait;
      }
    }
  };
}

/** Too big, against a constraint, of the wrong type. */
const REFUSED: ReadonlySet<number> = new Set([18, 19, 20]);

/** The remedy for missing rights. */
export const OWNER_REMEDY =
  "make the file, those beside it (-wal, -shm) and their folder writable with `chmod u+w`, or run as their owner";

const OTHERS_REMEDY =
  "run as that user, or have it give you the right to read and write the file, those beside it (-wal, -shm) and their folder";

/** Codes of SQLite that missing rights may be behind. */
const RIGHTS: ReadonlySet<number> = new Set([3, 8, 14]);

const TRY_AGAIN = new Map([
  [3, "may not be accessed"],
  [5, "is locked by another process"],
  [6, "is locked"],
  [8, "is read-only"],
  [10, "gave an input/output error"],
  [13, "cannot grow: the disk is full"],
  [14, "cannot be opened"],
]);

/** What to do where a retry does not help. */
const REMEDIES = new Map([
  [3, OWNER_REMEDY],
  [8, OWNER_REMEDY],
  [14, "check that its folder exists and that you may read and write both"],
]);

function translate(error: unknown, path: string): RedriveError {
  if (isRedriveError(error)) return error;
  const code = sqliteCode(error);
  const why = TRY_AGAIN.get(code ?? -1);
  const owner = RIGHTS.has(code ?? -1) ? otherOwner(path) : null;
  if (owner !== null) {
    const message = `The database file ${path} belongs to another user (${owner}), and you may not write it. Nothing was written; ${OTHERS_REMEDY}.`;
    return new RedriveError("store_unavailable", message, { cause: error });
  }
  if (why !== undefined) {
    const message = `The database file ${path} ${why}. Nothing was written; ${REMEDIES.get(code ?? -1) ?? "try again"}.`;
    return new RedriveError("store_unavailable", message, { cause: error });
  }
  const said = error instanceof Error ? error.message : String(error);
  // One write that the schema refuses says nothing about the store: other writes must continue.
  if (REFUSED.has(code ?? -1))
    return new RedriveError("illegal_transition", `The database refused this write: ${said}. Nothing was written.`, {
      cause: error,
    });
  const message =
    code === 26 || code === 11
      ? `The database file is damaged or not SQLite: ${said}.`
      : `The SQLite store failed: ${said}.`;
  return new RedriveError("store_unusable", message, { cause: error });
}

function translated<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw translate(error, path);
  }
}
