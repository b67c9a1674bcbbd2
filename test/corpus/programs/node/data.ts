// What one run of a cause works on: ids, names, amounts, dates, all different in each variant and equal in each making.

export interface Data {
  id: number;
  other: number;
  uuid: string;
  email: string;
  name: string;
  amount: string;
  date: string;
  sku: string;
  host: string;
  word: string;
  folder: string;
  /** A server that answers badly, and a port on which none listens. */
  base: string;
  closed: string;
}

/** A cause's label, and the call that makes it go wrong. */
export type Cause = [label: string, run: (d: Data) => unknown];

const NAMES = ["Mia Schulz", "O'Brien & Sons", "Łukasz Nowak", 'Zoë "Zed" Adams', "Chen Wei", "Ana-Lúcia", "Per Ås"];
const WORDS = ["falcon", "winter", "copper", "meadow", "quartz", "harbor", "violet", "ember", "saffron", "tundra"];
const HOSTS = ["db-1.eu-west.internal", "10.0.3.17", "pg.prod.example.com", "shard-42.local", "192.168.7.9"];

/** Small numbers from a seed, the same in every run. */
export function dice(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x9e3779b9) >>> 0;
    const mixed = Math.imul(state ^ (state >>> 15), 2246822519);
    const again = Math.imul(mixed ^ (mixed >>> 13), 3266489917);
    return ((again ^ (again >>> 16)) >>> 0) % below;
  };
}

export function dataOf(seed: number, places: { folder: string; base: string; closed: string }): Data {
  const roll = dice(seed);
  const pick = (from: string[]): string => from[roll(from.length)] ?? "none";
  const hex = (length: number): string => Array.from({ length }, () => "0123456789abcdef"[roll(16)]).join("");
  const word = pick(WORDS);
  return {
    id: 1000 + roll(9_000_000),
    other: 10 + roll(90_000),
    uuid: `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`,
    email: `${word}.${roll(999)}@${pick(["example.com", "mail.example.org", "shop.test"])}`,
    name: pick(NAMES),
    amount: `${1 + roll(9999)}.${10 + roll(89)}`,
    date: new Date(1_760_000_000_000 + roll(40_000_000) * 1000).toISOString(),
    sku: `${word.slice(0, 3).toUpperCase()}-${100 + roll(900)}`,
    host: pick(HOSTS),
    word,
    ...places,
  };
}
