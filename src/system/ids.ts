// Makes ids and nonces from the operating system's randomness, drawn in large portions because each draw is a system
// call.
import { randomFillSync } from "node:crypto";

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const POOL = Buffer.allocUnsafe(4096);
let used = POOL.length;

function randomBytes(count: number): number {
  if (used + count > POOL.length) {
    randomFillSync(POOL);
    used = 0;
  }
  const from = used;
  used += count;
  return from;
}

function hex(from: number, count: number): string {
  let text = "";
  for (let at = from; at < from + count; at++) text += HEX[POOL[at] as number];
  return text;
}

/** 128 random bits as hexadecimal text. */
export function randomNonce(): string {
  return hex(randomBytes(16), 16);
}

/** 48 random bits as hexadecimal text: short enough to read out, long enough for a fleet. */
export function randomWorkerId(): string {
  return hex(randomBytes(6), 6);
}

/** Before any time, so that the first id is made from the clock, whatever it says. */
let lastMs = -1;
let lastTime = "";
let counter = 0;

function begin(ms: number, first: number): void {
  const time = ms.toString(16).padStart(12, "0");
  [lastMs, lastTime, counter] = [ms, `${time.slice(0, 8)}-${time.slice(8)}`, first];
}

/** A UUID of version 7 that is greater than every earlier one of this process, even if the clock steps back. */
export function ascendingId(now: number): string {
  if (now > lastMs) {
    begin(now, (POOL[randomBytes(1)] as number) << 2);
  } else if (++counter > 0xfff) begin(lastMs + 1, 0);
  const from = randomBytes(8);
  POOL[from] = ((POOL[from] as number) & 0x3f) | 0x80;
  const tail = hex(from, 8);
  return `${lastTime}-7${counter.toString(16).padStart(3, "0")}-${tail.slice(0, 4)}-${tail.slice(4)}`;
}
