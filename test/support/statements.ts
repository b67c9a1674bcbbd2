// The statements that a store sends, collected while other tests use it, and what they read beside rows that they lock.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll } from "vitest";

/** Every text that a client of `pg` sends while the tests of this file run; a name for a schema stands for all of them. */
export function sentStatements(): ReadonlySet<string> {
  const texts = new Set<string>();
  const { query } = pg.Client.prototype;
  beforeAll(() => {
    pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
      const [config] = args as [string | { readonly text?: string }];
      const text = typeof config === "string" ? config : (config.text ?? "");
      texts.add(text.replaceAll(/\bt_[0-9a-f]{16}\b/g, "s"));
      return Reflect.apply(query, this, args) as never;
    } as typeof query;
  });
  afterAll(() => {
    pg.Client.prototype.query = query;
  });
  return texts;
}

const LOCKS = /\bfor (?:no key )?(?:update|(?:key )?share)\b(?: of (\w+(?:, \w+)*))?/g;
const READS = /\b(from|join) s\.\w+/;
/** A table of ours in a list of tables, and the name it has there. */
const TABLES =
  /\b(?:from|join|,) (?:lateral )?s\.(\w+)(?: (?:as )?(?!on\b|where\b|order\b|using\b|join\b|cross\b)(\w+))?/g;

/**
 * The lists of columns that a statement computes from other tables beside rows that it locks. A row that changed since the
 * statement began is read again when its lock is there; the other tables stay as they were when the statement began, so
 * that a statement of its own has to read them. That holds also for `skip locked`, which does not wait.
 */
export function listsBehindLocks(text: string): string[] {
  const selected = [...text.matchAll(LOCKS)].map(({ index, 1: only }) => queryBefore(text, index, only));
  const written = [...text.matchAll(/\b(?:returning|update s\.\w+ (?:\w+ )?set|do update set)\b/g)].map(
    ({ index }) => ({
      list: levelFrom(text, index),
      others: [],
    }),
  );
  return [...selected, ...written]
    .filter(({ list, others }) => READS.test(list) || others.some((name) => hasColumn(list, name)))
    .map(({ list }) => list);
}

/** What stands around every lock clause in the texts of statements in a folder, as far as it is the same whenever it is sent. */
export function lockClauses(folder: string): string[] {
  const lines = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"));
  return lines
    .filter((line) => !/^\s*(\/\/|\/?\*)/.test(line))
    .flatMap((line) => line.split(/\$\{|[`"}]/))
    .map((piece) => piece.trim())
    .filter((piece) => piece.search(LOCKS) !== -1);
}

/** A query that locks rows. */
interface LockingQuery {
  /** What it computes. */
  readonly list: string;
  /** Tables beside those whose rows it locks, by the names that they have in it. */
  readonly others: readonly string[];
}

/** The query whose lock clause is at this place; `only` are the tables that it locks, where it names them. */
function queryBefore(text: string, at: number, only?: string): LockingQuery {
  let depth = 0;
  let from = at;
  for (let place = at; place >= 0; place--) {
    if (text[place] === ")") depth += 1;
    else if (text[place] === "(") depth -= 1;
    if (depth < 0) break;
    if (depth > 0) continue;
    if (/^from\b/.test(text.slice(place)) && /\W/.test(text[place - 1] ?? " ")) from = place;
    else if (/^select\b/.test(text.slice(place)) && /\W/.test(text[place - 1] ?? " ")) {
      const names = [...text.slice(from, at).matchAll(TABLES)].map(([, table, name]) => name ?? (table as string));
      return {
        list: text.slice(place, from),
        others: only ? names.filter((name) => !only.split(", ").includes(name)) : [],
      };
    }
  }
  return { list: "", others: [] };
}

const hasColumn = (list: string, table: string): boolean => new RegExp(`\\b${table}\\.`).test(list);

/** The rest of the query in which this place is, without its conditions. */
function levelFrom(text: string, at: number): string {
  let depth = 0;
  for (let place = at; place < text.length; place++) {
    if (text[place] === "(") depth += 1;
    else if (text[place] === ")") depth -= 1;
    const isNext =
      depth === 0 &&
      place > at &&
      /^(?:from|where|returning)\b/.test(text.slice(place)) &&
      /\W/.test(text[place - 1] ?? " ");
    if (depth < 0 || isNext) return text.slice(at, place);
  }
  return text.slice(at);
}
