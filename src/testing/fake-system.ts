// The System of a test: the fake clock, and random numbers from a seed.
import type { System } from "../system/system.ts";
import type { EntryOwner, Timeline } from "./timeline.ts";

/** A source of 32 random bits at a time. */
export type Dice = () => number;

/** Random numbers from the seed and a name: sfc32, a separate stream for every name. */
export function seededDice(seed: number, name: string): Dice {
  let a = mixed(name, 0x9e3779b9 ^ seed);
  let b = mixed(name, 0x243f6a88 ^ Math.imul(seed, 0x85ebca6b));
  let c = seed | 0;
  let counter = 1;
  const bits = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  for (let i = 0; i < 12; i++) bits();
  return bits;
}

function mixed(text: string, start: number): number {
  let hash = start | 0;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash ^ (hash >>> 15);
}

/** A system on the fake clock; nothing it waits for happens once its owner is dead. */
export function fakeSystem(timeline: Timeline, dice: Dice, owner: EntryOwner = { alive: true }): System {
  const bornAt = timeline.now;
  let lastId = 0;
  const hex = (digits: number): string => {
    let text = "";
    while (text.length < digits) text += dice().toString(16).padStart(8, "0");
    return text.slice(0, digits);
  };
  return {
    now: () => timeline.now,
    monotonic: () => timeline.now - bornAt,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const end = (): void => {
          drop();
          signal?.removeEventListener("abort", end);
          if (owner.alive) resolve();
        };
        const drop = timeline.add(ms, owner, end);
        signal?.addEventListener("abort", end);
      }),
    after: (ms, callback) => timeline.add(ms, owner, callback),
    random: () => dice() / 4_294_967_296,
    jobId() {
      lastId = Math.max(lastId + 1, timeline.now);
      const time = lastId.toString(16).padStart(12, "0");
      return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3)}-8${hex(3)}-${hex(12)}`;
    },
    nonce: () => hex(32),
    workerId: () => hex(12),
    actor: () => "test",
  };
}
