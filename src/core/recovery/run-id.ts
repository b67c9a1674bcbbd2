// The ids of plans and redrive runs: short enough to read out, and in the order of their making, to the second.

const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
/** Before this there are none: 2025-01-01. */
const EPOCH_S = 1_735_689_600;

/** A new id, such as `r_1t0k5gq4zx`: six digits of time and four of chance. */
export function newRunId(kind: "p" | "r", now: number, random: () => number): string {
  const seconds = Math.max(0, Math.floor(now / 1_000) - EPOCH_S);
  return `${kind}_${digits(seconds, 6)}${digits(Math.floor(random() * 32 ** 4), 4)}`;
}

function digits(value: number, count: number): string {
  let text = "";
  for (let [left, at] = [value, 0]; at < count; at++, left = Math.floor(left / 32))
    text = `${DIGITS[left % 32]}${text}`;
  return text;
}
