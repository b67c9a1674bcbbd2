// The Postgres store: one schema, any number of machines. Enqueues, verdicts and redrives are on disk before they are
// answered (the server's synchronous_commit), and so are cells that people write. Claims and other cells are not:
// losing a claim only runs its jobs again.
import type pg from "pg";
import type { NewJob } from "../../core/new-job.ts";
import { invalid } from "../../core/options.ts";
import { realSystem } from "../../system/real.ts";
import { isNotReadable, type MigrationPlan, newerNotice } from "../migrations.ts";
import type { Store, Within } from "../store.ts";
import { VERBS, type Verb } from "../verb-facts.ts";
import { storeFrom } from "../verbs.ts";
import { causeVerbs } from "./causes.ts";
import { figuresVerb } from "./figures.ts";
import { cellVerbs } from "./cells.ts";
import { type Ask, IMPATIENT_MS, NOW } from "./context.ts";
import { controlVerbs } from "./control.ts";
import { deadLetterVerbs } from "./dead-letters.ts";
import { loadPg } from "./load-pg.ts";
import { type Enqueue, enqueuer, freshEnqueuer } from "./enqueue.ts";
import { eventVerbs } from "./event-log.ts";
import { failureVerbs } from "./failures.ts";
import { groupVerbs } from "./groups.ts";
import { jobVerbs } from "./jobs.ts";
import type { LaneOf } from "./lane-numbers.ts";
import { lanesVerb } from "./lanes.ts";
import { findSchema, migrate, migrationPlan } from "./migrate.ts";
import { openDependencies, type PostgresDependencies, type PostgresSurroundings } from "./dependencies.ts";
import { describePostgres, type PostgresOptions } from "./address.ts";
import { passwordOf, startPulse } from "./pulse.ts";
import { payloadVerbs } from "./payloads.ts";
import { redriveVerbs } from "./redrives.ts";
import { retentionVerbs } from "./retention.ts";
import { missingRights } from "./rights.ts";
import { completeWithin, settleVerb } from "./settle.ts";
import { type Transaction, within } from "./transaction.ts";
import { Listener, openWakerWithin } from "./wake.ts";
import { warmUp } from "./warm-up.ts";
import { claimVerb } from "./work.ts";
import { workerVerbs } from "./workers.ts";

export type { PostgresOptions } from "./address.ts";
export type { Transaction } from "./transaction.ts";

/** A Postgres store, with what only Postgres offers. */
export interface PostgresStore extends Store {
  readonly name: "postgres";
  within(tx: Transaction): Within;
  /** What `migrate` would do. */
  schema(): Promise<MigrationPlan>;
  /** The server's version and how safely it commits. */
  server(): Promise<{
    readonly version: string;
    readonly fsync: string;
    readonly synchronousCommit: string;
    readonly now: number;
  }>;
  /**
   * The rights on tables and sequences of the schema that the role lacks, as they would be granted; empty where none
   * are missing.
   */
  missingRights(): Promise<readonly string[]>;
}

/** Opens a store on a server, by its URL, by your pool, or with options; it connects on first use. */
export function postgres(where: string | pg.Pool | PostgresOptions): PostgresStore {
  if (typeof where === "string") return createPostgresStore({ url: where });
  if (typeof where !== "object" || where === null)
    throw invalid("postgres", "a URL, a pool or an object with one of them", where, "pass one of these");
  return createPostgresStore("query" in where ? { pool: where } : where);
}

/** The same with the caller's clock, for tests. */
export function createPostgresStore(options: PostgresOptions, surroundings: PostgresSurroundings = {}): PostgresStore {
  const parts = openDependencies(options, surroundings);
  const { db, questions, s, migrations, place, config, threadConfig, live } = parts;
  const wake = new Set<() => void>();
  const listening = openListening(parts, wake);
  const enqueue = enqueuer(parts, parts.waker);
  const verbs = verbsOf(parts, enqueue, listening);
  const { carryOut, idle } = readyFirst(verbs, () => migrate(db, s, place.shown, migrations));
  const beside = live ? threadConfig : null;
  const pulse = (at: pg.ClientConfig): Pick<Store, "pulse"> => ({
    pulse: (request, hears) =>
      startPulse(
        { request, config: at, schema: s, known: migrations.length, place: place.shown },
        passwordOf(config),
        hears,
      ),
  });
  const store = storeFrom(describePostgres(place), carryOut, {
    wake,
    remote: true,
    ...(beside && pulse(beside)),
    within: withinVerb(parts) as NonNullable<Store["within"]>,
    async close() {
      await listening.close();
      await idle();
      await Promise.all(questions === db ? [db.close()] : [db.close(), questions.close()]);
    },
  }) as Store & Pick<PostgresStore, "name" | "within">;
  return {
    ...store,
    onWake(hears, onDeaf = () => undefined) {
      listening.start(onDeaf);
      const off = store.onWake(hears);
      return () => {
        off();
        listening.tellNoMore(onDeaf);
        if (wake.size === 0) void listening.close();
      };
    },
    async schema() {
      const found = await findSchema(db.ask, s, place.shown, migrations.length);
      return migrationPlan(s, found, migrations);
    },
    async server() {
      const settings = ["server_version", "fsync", "synchronous_commit"].map((name) => `current_setting('${name}')`);
      const [row] = await db.ask({ text: `select ${settings.join(", ")}, ${NOW}` });
      const [version, fsync, synchronousCommit, now] = row as [string, string, string, number];
      return { version, fsync, synchronousCommit, now };
    },
    missingRights: () => missingRights(db.ask, s),
  };
}

function verbsOf(
  parts: PostgresDependencies,
  enqueue: Enqueue,
  listening: Listening,
): { readonly [K in Verb]: Store[K] } {
  const { db, s, migrations, place, waker, openClaims, floors, lanes } = parts;
  const looks = lanesVerb(parts, floors, listening.isHeard);
  const claims = claimVerb(parts, openClaims, floors);
  const fresh = freshEnqueuer(parts, waker);
  const workers = workerVerbs(parts);
  const warm = warmUp(parts, waker);
  return {
    migrate: async () => newerNotice(await migrate(db, s, place.shown, migrations), migrations.length),
    enqueue: async (jobs) => {
      if (jobs.length === 0) return [];
      const laneOf = await lanes.intern(jobs);
      const plain = jobs.every(({ key }) => key === null) && new Set(jobs.map(({ id }) => id)).size === jobs.length;
      if (plain) return (await fresh(jobs, laneOf)) ?? enqueue(db.ask, jobs, laneOf);
      // The caller tries again; meanwhile others have the connection.
      return db.together((ask) => enqueue(ask, jobs, laneOf), undefined, IMPATIENT_MS);
    },
    lanes: async (after, limit) => {
      const page = await looks(after, limit);
      if (after === null) listening.looked(page.lanes.length === 0 && page.next === null);
      return page;
    },
    claim: async (request) => {
      const answer = await claims(request);
      if (answer.jobs.length > 0) listening.took();
      return answer;
    },
    settle: settleVerb(parts, openClaims, waker),
    ...groupVerbs(parts),
    ...jobVerbs(parts, waker),
    ...workers,
    register: async (worker) => {
      if (parts.live && parts.prepares) await warm();
      await workers.register(worker);
    },
    ...deadLetterVerbs(parts),
    ...redriveVerbs(parts, waker),
    ...payloadVerbs(parts),
    ...failureVerbs(parts),
    ...retentionVerbs(parts),
    ...controlVerbs(parts, waker),
    ...cellVerbs(parts),
    ...eventVerbs(parts),
    ...causeVerbs(parts),
    ...figuresVerb(parts),
  };
}

function withinVerb(parts: PostgresDependencies): PostgresStore["within"] {
  const enqueue = enqueuer(parts, openWakerWithin(parts.names), true);
  const complete = completeWithin(parts.s);
  return (tx) => {
    const ask = within(tx, parts.place.shown);
    return {
      async enqueue(jobs) {
        VERBS.enqueue.check?.(jobs);
        return enqueue(ask, jobs, await lanesBeside(parts, ask, jobs));
      },
      complete: (lease, result, said) => complete(ask, lease, result, said),
    };
  };
}

type CarryOut = (verb: Verb, args: readonly unknown[]) => Promise<unknown>;

/** Migrates before the first verb, and again if that failed; knows when no call is under way. */
function readyFirst(
  verbs: { readonly [K in Verb]: Store[K] },
  prepare: () => Promise<unknown>,
): { readonly carryOut: CarryOut; idle(): Promise<void> } {
  let ready: Promise<unknown> | null = null;
  // Counted, not kept: a set of promises would keep their answers in memory.
  let underWay = 0;
  let onIdle: (() => void)[] = [];
  const ended = (): void => {
    underWay -= 1;
    if (underWay > 0) return;
    for (const tell of onIdle) tell();
    onIdle = [];
  };
  const prepared = (): Promise<unknown> => {
    ready ??= prepare().catch((error: unknown) => {
      ready = null;
      throw error;
    });
    return ready;
  };
  const run: CarryOut = async (verb, args) => {
    await prepared();
    try {
      return await (verbs[verb] as (...given: readonly unknown[]) => Promise<unknown>)(...args);
    } catch (error) {
      // A newer program has migrated beyond what this one may work with: no verb goes on before that has changed.
      if (isNotReadable(error)) ready = null;
      throw error;
    }
  };
  return {
    carryOut(verb, args) {
      underWay += 1;
      return run(verb, args).finally(ended);
    },
    idle: () => (underWay === 0 ? Promise.resolve() : new Promise((resolve) => onIdle.push(resolve))),
  };
}

/** Called with the reason why no wake-up will come. */
type OnDeaf = (why: string) => void;

const POOLED =
  "a pooler in transaction mode stands between the pool and Postgres, so that no wake-up arrives, and work is found by polling alone: say so with pooler: true";

/** The listener, once a caller wants to be woken. */
interface Listening {
  start(onDeaf: OnDeaf): void;
  tellNoMore(onDeaf: OnDeaf): void;
  looked(nothing: boolean): void;
  took(): void;
  isHeard(): boolean;
  close(): Promise<void>;
}

function openListening(
  { names, place, config, live }: PostgresDependencies,
  listeners: Iterable<() => void>,
): Listening {
  let listener: Listener | null = null;
  let closing: Promise<void> = Promise.resolve();
  let isPooled = false;
  const told = new Set<OnDeaf>();
  const onPooler = (): void => {
    isPooled = true;
    for (const onDeaf of told) onDeaf(POOLED);
  };
  return {
    start(onDeaf) {
      if (!live || place.pooler) return;
      if (isPooled) return onDeaf(POOLED);
      told.add(onDeaf);
      const connect = (): pg.Client => new (loadPg().Client)(config as pg.ClientConfig);
      listener ??= new Listener({ names, system: realSystem, connect, listeners, onPooler });
    },
    tellNoMore: (onDeaf) => void told.delete(onDeaf),
    looked: (nothing) => listener?.looked(nothing),
    took: () => listener?.took(),
    isHeard: () => listener?.isHeard ?? false,
    close() {
      closing = Promise.all([closing, listener?.close()]).then(() => undefined);
      listener = null;
      return closing;
    },
  };
}

/**
 * The lanes of jobs in a caller's transaction. A new lane is made outside that transaction, which would otherwise block
 * all others from it until it ends. It is made inside only where the pool has no free connection, because waiting for
 * one here could be a wait for ourselves, or where another open transaction has made it: there the server detects a
 * deadlock.
 */
async function lanesBeside(
  { lanes, place: { pool } }: PostgresDependencies,
  ask: Ask,
  jobs: readonly NewJob[],
): Promise<LaneOf> {
  if (pool !== null && !hasSpare(pool)) return lanes.internWithin(ask, jobs);
  return lanes.internAtOnce(jobs).catch(() => lanes.internWithin(ask, jobs));
}

/** True if the pool can give a connection now, without waiting for one in use. */
function hasSpare({ idleCount, totalCount, waitingCount, options }: pg.Pool): boolean {
  return waitingCount === 0 && (idleCount > 0 || totalCount < (options?.max ?? 0));
}
