// Seeded dice for the simulation: sfc32, small and fast, with a stream of its own for every name, so that what one
// actor rolls never depends on how often another one rolled.

/** A seeded source of chance. */
export interface Dice {
  /** From 0 up to, but not including, 1. */
  random(): number;
  /** 32 random bits. */
  bits(): number;
  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number;
  /** True with this probability. */
  chance(probability: number): boolean;
  /** One of these. */
  pick<T>(items: readonly T[]): T;
  /** This many hexadecimal digits. */
  hex(digits: number): string;
}

/** The dice of one name under one seed. */
export function createDice(seed: number, name: string): Dice {
  let a = mix(name, 0x9e3779b9 ^ seed);
  let b = mix(name, 0x243f6a88 ^ Math.imul(seed, 0x85ebca6b));
  let c = seed | 0;
  let counter = 1;
  const bits = (): number => {
    const t = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + t) | 0;
    return t >>> 0;
  };
  for (let i = 0; i < 12; i++) bits();
  const random = (): number => bits() / 4_294_967_296;
  return {
    random,
    bits,
    between: (least, most) => least + Math.floor(random() * (most - least + 1)),
    chance: (probability) => random() < probability,
    pick: (items) => {
      const item = items[Math.floor(random() * items.length)];
      if (item === undefined) throw new Error("Nothing to pick from.");
      return item;
    },
    hex: (digits) => {
      let text = "";
      while (text.length < digits) text += bits().toString(16).padStart(8, "0");
      return text.slice(0, digits);
    },
  };
}

function mix(text: string, start: number): number {
  let hash = start | 0;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash ^ (hash >>> 15);
}
