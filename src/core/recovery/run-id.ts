// The ids of plans and redrive runs: short enough to read out, and in the order of their making, to the second. The run of
// a plan has the digits of the plan, so that a plan makes one run.

const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
/** Before this there are none: 2025-01-01. */
const EPOCH_S = 1_735_689_600;

/** The id of a new plan, such as `p_1t0k5gq4zx`: six digits of time and four of chance. */
export function newPlanId(now: number, random: () => number): string {
  const seconds = Math.max(0, Math.floor(now / 1_000) - EPOCH_S);
  return `p_${digits(seconds, 6)}${digits(Math.floor(random() * 32 ** 4), 4)}`;
}

/** The id of the run of a plan, such as `r_1t0k5gq4zx`. */
export function runIdOf(plan: string): string {
  return plan.replace(/^p_/, "r_");
}

function digits(value: number, count: number): string {
  let text = "";
  for (let [left, at] = [value, 0]; at < count; at++, left = Math.floor(left / 32))
    text = `${DIGITS[left % 32]}${text}`;
  return text;
}
