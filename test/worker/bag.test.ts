// A bag holds what was put in and not taken out, whatever the order.
import { describe, expect, it } from "vitest";
import { Bag } from "../../src/worker/bag.ts";

const things = (count: number) => Array.from({ length: count }, (_, n) => ({ n, place: 0 }));
const inside = (bag: Bag<{ n: number; place: number }>): number[] => [...bag].map(({ n }) => n).sort((a, b) => a - b);

describe("a bag", () => {
  it("gives back each thing once, in whatever order they are taken out", () => {
    const [a, b, c, d] = things(4) as [Thing, Thing, Thing, Thing];
    const bag = new Bag<Thing>();
    for (const each of [a, b, c, d, b]) bag.add(each);
    expect(bag.size).toBe(4);
    expect([bag.delete(b), bag.delete(b), bag.delete(d)]).toEqual([true, false, true]);
    expect(inside(bag)).toEqual([0, 2]);
    expect([bag.has(a), bag.has(b), bag.has(c)]).toEqual([true, false, true]);
    bag.add(b);
    expect([bag.delete(a), bag.delete(c), bag.delete(b), bag.size]).toEqual([true, true, true, 0]);
  });

  it("does not take a thing for one that was never there", () => {
    const [a, stranger] = things(2) as [Thing, Thing];
    const bag = new Bag<Thing>();
    bag.add(a);
    expect([bag.has(stranger), bag.delete(stranger), bag.size]).toEqual([false, false, 1]);
  });

  it("can be emptied while one goes through it", () => {
    const bag = new Bag<Thing>();
    for (const each of things(5)) bag.add(each);
    const seen: number[] = [];
    for (const each of bag) {
      seen.push(each.n);
      bag.delete(each);
    }
    expect(seen).toEqual([0, 1, 2, 3, 4]);
    expect(bag.size).toBe(0);
  });
});

type Thing = { n: number; place: number };
