// No statement that takes row locks reads another table in its target list: the list is computed from the snapshot of before
// the wait for the lock, so that it may tell what was true before the other transaction committed. Read after the lock, in
// a second statement. Looks at the texts of all statements in the source of the Postgres store.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const FOLDER = fileURLToPath(new URL("../../../src/store/postgres/", import.meta.url));
const LOCK = /\bfor (?:no key )?(?:update|share)\b|\bfor key share\b|\$\{lock\}(?!\()/g;

/** The texts between backquotes; expressions inside them are replaced by a name, and their own texts come apart. */
function statementsIn(code: string): string[] {
  const texts: string[] = [];
  const read = (from: number): [text: string, end: number] => {
    let text = "";
    for (let at = from; at < code.length; at++) {
      if (code[at] === "`") return [text, at];
      if (code.startsWith("${", at)) {
        const end = expression(at + 2);
        const inner = code.slice(at + 2, end);
        text += inner === "lock" ? "${lock}" : "expression";
        at = end;
      } else text += code[at];
    }
    return [text, code.length];
  };
  const expression = (from: number): number => {
    let depth = 0;
    for (let at = from; at < code.length; at++) {
      if (code[at] === "`") at = keep(at + 1);
      else if (code[at] === "{") depth++;
      else if (code[at] === "}" && depth-- === 0) return at;
    }
    return code.length;
  };
  const keep = (from: number): number => {
    const [text, end] = read(from);
    texts.push(text);
    return end;
  };
  for (let at = 0; at < code.length; at++) if (code[at] === "`") at = keep(at + 1);
  return texts;
}

/** The place of the last of these words before a place, outside parentheses that are closed before it; -1 for none. */
function wordBefore(text: string, place: number, word: RegExp): number {
  let depth = 0;
  for (let at = place - 1; at >= 0; at--) {
    if (text[at] === ")") depth++;
    if (text[at] === "(" && depth-- === 0) return -1;
    if (depth === 0 && word.test(text.slice(at, at + 8))) return at;
  }
  return -1;
}

/** The target list of the select that takes the lock; null where there is none. */
function targetsOf(text: string, lock: number): string | null {
  const select = wordBefore(text, lock, /^\bselect\b/);
  let depth = 0;
  for (let at = select; at >= 0 && at < lock; at++) {
    if (text[at] === "(") depth++;
    if (text[at] === ")") depth--;
    if (depth === 0 && /^\sfrom\s/.test(text.slice(at, at + 6))) return text.slice(select + 6, at);
  }
  return null;
}

/** What a write answers of the rows that it has locked, up to the end of its statement. */
function returnedFrom(text: string, place: number): string {
  let depth = 0;
  for (let at = place; at < text.length; at++) {
    if (text[at] === "(") depth++;
    if (text[at] === ")" && depth-- === 0) return text.slice(place, at);
  }
  return text.slice(place);
}

const STATEMENTS = readdirSync(FOLDER)
  .filter((file) => file.endsWith(".ts"))
  .flatMap((file) => statementsIn(readFileSync(`${FOLDER}${file}`, "utf8")).map((text) => ({ file, text })));

/** The lists of a statement that are computed from rows it locks. */
function listsOf(text: string): string[] {
  const locks = [...text.matchAll(LOCK)].map(({ index }) => targetsOf(text, index) ?? "");
  return [...locks, ...[...text.matchAll(/\breturning\s/g)].map(({ index }) => returnedFrom(text, index))];
}

/** True for a list that reads more than the parts of its own statement. */
function readsTables(list: string, text: string): boolean {
  const sources = [...list.matchAll(/\b(?:from|join)\s+([\w.]+)/g)].map(([, name]) => name as string);
  return sources.some((name) => !new RegExp(`\\b${name} as (?:not )?(?:materialized )?\\(`).test(text));
}

describe("a statement that takes row locks", () => {
  it("reads no other table in its target list", () => {
    const found = STATEMENTS.flatMap(({ file, text }) =>
      listsOf(text)
        .filter((list) => readsTables(list, text))
        .map((list) => `${file}: ${list.trim()}`),
    );
    expect(found).toEqual([]);
  });

  it("is found by this test wherever one stands", () => {
    const locks = STATEMENTS.flatMap(({ file, text }) =>
      [...text.matchAll(LOCK)].map(({ index }) => ({ file, list: targetsOf(text, index) })),
    );
    expect(locks.length).toBeGreaterThan(20);
    expect(locks.filter(({ list }) => list === null)).toEqual([]);
  });

  it.each([
    "select k.job_id, (select state from job j where j.id = k.job_id) from job_key k where k.key = $1 for update",
    "with h as (select k.*, exists (select from job) from job_key k where true for update of k skip locked) select 1",
    "insert into job_key as k (key) values ($1) on conflict (key) do update set gone = k.gone returning (select state from job)",
  ])("is refused for %s", (text) => {
    expect(listsOf(text).some((list) => readsTables(list, text))).toBe(true);
  });
});
