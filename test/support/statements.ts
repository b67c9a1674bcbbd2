// The statements that a store sends, collected while other tests use it, and a rule about them.
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

const LOCKS = /\bfor (no key )?(update|(key )?share)\b(?! skip locked| of \w+ skip locked)/g;
const READS = /\b(from|join) s\.\w+/;

/**
 * The lists of columns that a statement computes from other tables after it may have waited for a row. It sees those
 * tables as they were before the wait; a statement of its own would see them as they are.
 */
export function listsBehindLocks(text: string): string[] {
  const columns = [...text.matchAll(LOCKS)].map(({ index }) => selectListBefore(text, index));
  const returned = [...text.matchAll(/\breturning\b/g)].map(({ index }) => levelFrom(text, index));
  return [...columns, ...returned].filter((list) => READS.test(list));
}

/** What stands between `select` and `from` of the query whose end is at this place. */
function selectListBefore(text: string, at: number): string {
  let depth = 0;
  let from = at;
  for (let place = at; place >= 0; place--) {
    if (text[place] === ")") depth += 1;
    else if (text[place] === "(") depth -= 1;
    if (depth < 0) break;
    if (depth > 0) continue;
    if (/^\bfrom\b/.test(text.slice(place)) && /\W/.test(text[place - 1] ?? " ")) from = place;
    else if (/^\bselect\b/.test(text.slice(place))) return text.slice(place, from);
  }
  return "";
}

/** The rest of the query in which this place is. */
function levelFrom(text: string, at: number): string {
  let depth = 0;
  for (let place = at; place < text.length; place++) {
    if (text[place] === "(") depth += 1;
    else if (text[place] === ")") depth -= 1;
    if (depth < 0) return text.slice(at, place);
  }
  return text.slice(at);
}
