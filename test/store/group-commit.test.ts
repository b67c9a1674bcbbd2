// Writes that share commits: how items are grouped, in which order they go, and when nothing is left.
import { describe, expect, it } from "vitest";
import { groupCommit } from "../../src/store/group-commit.ts";

/** A writer whose writes end when the test says so. */
function setup(most: number, inFlight?: number) {
  const groups: number[][] = [];
  const open: (() => void)[] = [];
  let underWay = 0;
  let mostUnderWay = 0;
  const write = async (items: number[]): Promise<void> => {
    groups.push(items);
    mostUnderWay = Math.max(mostUnderWay, ++underWay);
    await new Promise<void>((resolve) => open.push(resolve));
    underWay -= 1;
  };
  const shared = groupCommit(write, most, inFlight);
  const addRange = (from: number, count: number): void => {
    for (let item = from; item < from + count; item++) shared.add(item);
  };
  /** Ends the oldest write and lets what follows from it happen. */
  const endOne = async (): Promise<void> => {
    open.shift()?.();
    await turn();
  };
  const endAll = async (): Promise<void> => {
    for (let n = 0; n < 10_000 && open.length > 0; n++) await endOne();
  };
  return { shared, groups, addRange, endOne, endAll, mostUnderWay: () => mostUnderWay };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, at) => from + at);

describe("one write in flight", () => {
  it("takes what one event brings together, and what arrives meanwhile with the next", async () => {
    const { shared, groups, addRange, endOne, mostUnderWay } = setup(1_000);
    addRange(0, 3);
    expect(groups).toEqual([]);
    await turn();
    expect(groups).toEqual([range(0, 3)]);
    addRange(3, 50);
    await turn();
    addRange(53, 50);
    await turn();
    expect(groups).toHaveLength(1);
    await endOne();
    expect(groups).toEqual([range(0, 3), range(3, 100)]);
    await endOne();
    expect(mostUnderWay()).toBe(1);
    expect(shared.size).toBe(0);
  });

  it("writes no more than the most at a time, in the order in which they were added", async () => {
    const { groups, addRange, endAll } = setup(40);
    addRange(0, 95);
    await turn();
    await endAll();
    expect(groups).toEqual([range(0, 40), range(40, 40), range(80, 15)]);
  });
});

describe("two writes in flight", () => {
  it("share a crowd in halves, and a third one waits", async () => {
    const { groups, addRange, endOne, mostUnderWay } = setup(1_000, 2);
    addRange(0, 100);
    await turn();
    expect(groups).toEqual([range(0, 50), range(50, 50)]);
    addRange(100, 60);
    await turn();
    expect(groups).toHaveLength(2);
    await endOne();
    expect(groups[2]).toEqual(range(100, 60));
    expect(mostUnderWay()).toBe(2);
  });

  it("leave a small crowd whole", async () => {
    const { groups, addRange } = setup(1_000, 2);
    addRange(0, 16);
    await turn();
    expect(groups).toEqual([range(0, 16)]);
  });

  it("let what comes while one is under way go at once", async () => {
    const { groups, addRange } = setup(1_000, 2);
    addRange(0, 1);
    await turn();
    addRange(1, 1);
    await turn();
    expect(groups).toEqual([[0], [1]]);
  });

  it("are never more, and each keeps the order of what was added; nothing is lost or doubled", async () => {
    const { shared, groups, addRange, endOne, endAll, mostUnderWay } = setup(30, 2);
    let added = 0;
    for (let round = 0; round < 200; round++) {
      const count = (round * 7) % 45;
      addRange(added, count);
      added += count;
      if (round % 3 === 0) await turn();
      if (round % 4 === 0) await endOne();
    }
    await turn();
    await endAll();
    expect(mostUnderWay()).toBe(2);
    expect(Math.max(...groups.map(({ length }) => length))).toBeLessThanOrEqual(30);
    expect(groups.flat()).toEqual(range(0, added));
    expect(shared.size).toBe(0);
  });
});

describe("size", () => {
  it("counts what waits and what is under way", async () => {
    const { shared, addRange, endOne } = setup(10, 2);
    expect(shared.size).toBe(0);
    addRange(0, 25);
    expect(shared.size).toBe(25);
    await turn();
    expect(shared.size).toBe(25);
    await endOne();
    expect(shared.size).toBe(15);
    await endOne();
    expect(shared.size).toBe(5);
    await endOne();
    expect(shared.size).toBe(0);
  });
});

describe("idle", () => {
  it("resolves at once when there is nothing, for everybody who asks", async () => {
    const { shared } = setup(10, 2);
    await Promise.all([shared.idle(), shared.idle()]);
    await shared.idle();
  });

  it.each([1, 2])("with %i in flight resolves only when nothing is under way or waiting", async (inFlight) => {
    const { shared, addRange, endOne } = setup(10, inFlight);
    let idle = 0;
    addRange(0, 25);
    void shared.idle().then(() => (idle += 1));
    await turn();
    void shared.idle().then(() => (idle += 1));
    for (let writes = 3; writes > 0; writes--) {
      expect(idle).toBe(0);
      expect(shared.size).toBeGreaterThan(0);
      await endOne();
    }
    expect(idle).toBe(2);
  });

  it("waits for what is added after it was asked for, as long as something is under way", async () => {
    const { shared, addRange, endOne } = setup(10, 2);
    let idle = false;
    addRange(0, 1);
    void shared.idle().then(() => (idle = true));
    await turn();
    addRange(1, 1);
    await turn();
    await endOne();
    expect(idle).toBe(false);
    await endOne();
    expect(idle).toBe(true);
  });
});
