// Wake-ups. A process whose workers found nothing to do holds a shared lock on its listening connection; a statement
// that makes work due checks for such a lock and notifies only if there is one, once and with its commit. Locks are in
// the server's memory: taking one, checking, and a process that dies cost no write at all.
import type pg from "pg";
import type { System } from "../../system/system.ts";
import { ring } from "../verbs.ts";
import { inTime } from "./timeout.ts";

/** The part of wake-ups that statements need. */
export interface Waker {
  /** An expression that notifies if a process idles; its value has no meaning. */
  readonly notify: string;
}

/** The names under which processes of one schema meet. */
export interface WakeNames {
  readonly channel: string;
  /** Held, shared, while idle. */
  readonly idle: string;
  /** Held, shared, by a caller's transaction that has made work due, until it ends. */
  readonly open: string;
}

/** The names for a schema. */
export function wakeNames(s: string): WakeNames {
  const lock = (name: string): string => `pg_catalog.hashtext('redrive ${name}'), pg_catalog.hashtext('${s}')`;
  return { channel: `redrive_${s}`, idle: lock("idle"), open: lock("open") };
}

/** Notifies where a process idles. */
export function openWaker({ channel, idle }: WakeNames): Waker {
  // A statement that gets the lock exclusively knows that no process idles, and releases it at once.
  return {
    notify: `case when pg_catalog.pg_try_advisory_lock(${idle}) then pg_catalog.pg_advisory_unlock(${idle})::text else pg_catalog.pg_notify('${channel}', '')::text end`,
  };
}

/**
 * The same inside a caller's transaction, which may commit long after the check: a process that begins to idle
 * meanwhile finds its lock. Notifying always would be simpler, but commits that notify wait for one another.
 */
export function openWakerWithin(names: WakeNames): Waker {
  // First the lock, then the check: one of the two sides sees the other.
  return {
    notify: `case when pg_catalog.pg_advisory_xact_lock_shared(${names.open})::text = '' then ${openWaker(names).notify} end`,
  };
}

/** What a listener needs. */
export interface ListenerOptions {
  readonly names: WakeNames;
  readonly system: System;
  /** A separate connection, not yet connected. */
  readonly connect: () => pg.Client;
  readonly listeners: Iterable<() => void>;
  /** Called once if a pooler gives every transaction another connection, so that no notification arrives. */
  readonly onPooler: () => void;
}

const BACKEND = "select pg_catalog.pg_backend_pid() as pid";
/** How often we check whether our connection was replaced. */
const CHECK_MS = 2_000;
/**
 * In which of these checks the server is asked whether the connection still exists: in the first ones, because of
 * poolers, then rarely. A connection that broke unnoticed costs only hints; polling finds all work.
 */
const [ASKED_FIRST, ASKED_EVERY] = [5, 30];
const ANSWER_MS = 3_000;
const AGAIN_MS = 500;
/** A commit that was under way has mostly ended after this long. */
const COMMIT_MS = 20;
/** A worker that saw its work has taken it after this long. */
const TAKES_MS = 20;
/** A process that has found work for this long is no longer idle; switching sooner would leave gaps without hints. */
const BUSY_AFTER_MS = 250;

/**
 * Listens for notifications on a separate connection, which is replaced when it is gone. Errors here are never
 * reported, because polling finds all work.
 */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #ending = new AbortController();
  readonly #watching: Promise<void>;
  #client: pg.Client | null = null;
  /** The process of the server that listens for us. */
  #backend: unknown = null;
  #idle = false;
  /** When work was first found since there was none. */
  #busySince: number | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #tookAt = Number.NEGATIVE_INFINITY;
  /** Whether we wait to see if the last look led to anything: one wait for any number of looks. */
  #doubting = false;
  #changing: Promise<void> = Promise.resolve();
  /** How often we have announced that we idle. */
  #rests = 0;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#watching = this.#watch();
  }

  /** True while every process that makes work due notifies us. */
  get isHeard(): boolean {
    return this.#idle && this.#client !== null;
  }

  /** Records that a worker looked for work. What it saw may not be its own: then it takes nothing, and idles. */
  looked(nothing: boolean): void {
    this.#lookedAt = this.#options.system.monotonic();
    if (nothing) this.#rest(this.#lookedAt);
    else if (!this.#idle && !this.#doubting) void this.#doubt();
  }

  /** Records that a worker took work. */
  took(): void {
    this.#tookAt = this.#options.system.monotonic();
    this.#busySince ??= this.#tookAt;
    if (this.#idle && this.#tookAt - this.#busySince > BUSY_AFTER_MS) this.#say(false);
  }

  async close(): Promise<void> {
    this.#ending.abort();
    await this.#watching;
    await this.#changing;
  }

  #ring(): void {
    ring(this.#options.listeners);
  }

  /** No worker took anything since then: there is nothing for us. */
  #rest(since: number): void {
    if (this.#tookAt >= since) return;
    this.#busySince = null;
    if (!this.#idle) this.#say(true);
  }

  async #doubt(): Promise<void> {
    const { system } = this.#options;
    this.#doubting = true;
    for (let seen = Number.NEGATIVE_INFINITY; this.#lookedAt > Math.max(seen, this.#tookAt); ) {
      seen = this.#lookedAt;
      await system.sleep(TAKES_MS, this.#ending.signal);
      this.#rest(seen);
    }
    this.#doubting = false;
  }

  /** Announces that we idle, or no longer do, one after the other. */
  #say(idle: boolean): void {
    this.#changing = this.#changing.then(async () => {
      const to = this.#client;
      if (!to || this.#idle === idle) return;
      const lock = idle ? "pg_catalog.pg_advisory_lock_shared" : "pg_catalog.pg_advisory_unlock_shared";
      if (!(await this.#ask(to, `select ${lock}(${this.#options.names.idle})`))) return;
      this.#idle = idle;
      if (!idle) return;
      // Statements that made work due before the lock existed did not see it, and may be about to commit.
      this.#ring();
      void this.#awaitOpen(to, ++this.#rests);
    });
  }

  /** Looks again when transactions that may not have seen our lock have ended; less often the longer they take. */
  async #awaitOpen(client: pg.Client, rest: number): Promise<void> {
    const { system, names } = this.#options;
    const find = `select virtualtransaction from pg_catalog.pg_locks where locktype = 'advisory' and (classid, objid) = (${names.open})
      and database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())`;
    const from = system.monotonic();
    let open: Set<unknown> | null = null;
    while (open === null || (open.size > 0 && this.#idle && this.#rests === rest)) {
      const waited = system.monotonic() - from;
      await system.sleep(Math.min(Math.max(COMMIT_MS, waited / 8), CHECK_MS), this.#ending.signal);
      if (this.#ending.signal.aborted || this.#client !== client) return;
      const rows = await this.#ask(client, find);
      if (!rows) return;
      const found = new Set(rows.map(({ virtualtransaction }) => virtualtransaction));
      const still: Set<unknown> = open === null ? found : new Set([...open].filter((each) => found.has(each)));
      // The first time also for other transactions that were about to commit.
      if (open === null || still.size < open.size) this.#ring();
      open = still;
    }
  }

  /** Null, and the connection is given up, if there is no answer in time. */
  async #ask(client: pg.Client, text: string): Promise<Record<string, unknown>[] | null> {
    try {
      const { rows } = await this.#inTime(client.query<Record<string, unknown>>(text));
      return this.#client === client ? rows : null;
    } catch {
      this.#drop(client);
      return null;
    }
  }

  #inTime<T>(work: Promise<T>): Promise<T> {
    return inTime(work, ANSWER_MS, this.#options.system);
  }

  #drop(client: pg.Client): void {
    client.removeAllListeners("notification");
    void client.end().catch(() => undefined);
    if (this.#client !== client) return;
    this.#client = null;
    this.#idle = false;
  }

  async #open(): Promise<void> {
    const client = this.#options.connect();
    client.on("error", () => this.#drop(client));
    client.on("end", () => this.#drop(client));
    client.on("notification", () => this.#ring());
    try {
      await this.#inTime(client.connect());
      // In one message, so that the same server process does both.
      const both = `listen ${this.#options.names.channel}; ${BACKEND}`;
      const answers: pg.QueryResult<{ pid?: unknown }>[] = [await this.#inTime(client.query(both))].flat();
      this.#backend = answers.at(-1)?.rows[0]?.pid;
      this.#client = client;
      // Notifications sent while no connection listened are not repeated.
      this.#ring();
    } catch {
      this.#drop(client);
    }
  }

  /** Whether the connection exists, and is still the one that listens. */
  async #check(client: pg.Client): Promise<void> {
    const rows = await this.#ask(client, BACKEND);
    if (!rows || rows[0]?.["pid"] === this.#backend) return;
    this.#ending.abort();
    this.#options.onPooler();
  }

  async #watch(): Promise<void> {
    const { system } = this.#options;
    const { signal } = this.#ending;
    let looks = 0;
    while (!signal.aborted) {
      if (!this.#client) {
        looks = 0;
        await this.#open();
      }
      await system.sleep(this.#client ? CHECK_MS : AGAIN_MS * (0.5 + system.random()), signal);
      looks += 1;
      const isAsked = looks <= ASKED_FIRST || looks % ASKED_EVERY === 0;
      if (this.#client && isAsked && !signal.aborted) await this.#check(this.#client);
    }
    if (this.#client) this.#drop(this.#client);
  }
}
