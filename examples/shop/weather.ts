// The bad day of the service, as a pure function: who calls, when, for the how manieth time, and what the dice say, in;
// how it answers, out. Times of the day go from 0 to 1; the jobs come in from 0 to 1, what is left over goes on after.

/** The four things the service offers. */
export const SERVICES = ["payments", "media", "mail", "crm"] as const;
/** One of `SERVICES`. */
export type ServiceName = (typeof SERVICES)[number];

/** What is fixed about a job from the start. */
export type SeededFate = "fine" | "broken" | "refused" | "hangs" | "hangs once";

/** How the service answers a call. */
export type AnswerKind = "ok" | "error" | "reset" | "limited" | "down" | "refused" | "hang";

/** A call as the weather sees it. */
export interface Question {
  readonly service: ServiceName;
  readonly fate: SeededFate;
  /** Calls that got through for this job so far. */
  readonly earlier: number;
  readonly at: number;
  /** True in the evening, when connections hold and the service makes no mistakes. */
  readonly calm?: boolean;
  readonly dice: () => number;
}

/** A part of the day in which things are different. */
export interface Spell {
  readonly kind: "limited" | "down";
  readonly from: number;
  readonly until: number;
  readonly services: readonly ServiceName[];
}

/** The spells of the day. */
export const SPELLS: readonly Spell[] = [
  { kind: "limited", from: 0.14, until: 0.28, services: ["media", "mail"] },
  { kind: "down", from: 0.4, until: 0.64, services: ["payments"] },
];

/** When the outage is nearly over: it lasts until it was noticed, on a slow machine too. */
export const NOTICED_BY = 0.62;

/** When a worker is killed: after the outage, while much is to be caught up. */
export const KILL_AT = 0.8;

/** Answers of each kind in a hundred calls, outside of spells. */
const RESETS = 0.04;
const ERRORS = 0.08;
const SLOW = 0.12;

/** The spell a service is in, if any. */
export function spellOf(service: ServiceName, at: number): Spell | undefined {
  return SPELLS.find(({ from, until, services }) => at >= from && at < until && services.includes(service));
}

/** The answer to a call, and how long it takes. */
export function answerTo({ service, fate, earlier, at, calm = false, dice }: Question): {
  kind: AnswerKind;
  latencyMs: number;
} {
  const quick = 15 + dice() * 30;
  const spell = spellOf(service, at);
  if (spell?.kind === "down") return { kind: "down", latencyMs: quick };
  if (spell?.kind === "limited") return { kind: "limited", latencyMs: quick };
  if (fate === "refused") return { kind: "refused", latencyMs: quick };
  if (fate === "hangs" || (fate === "hangs once" && earlier === 0)) return { kind: "hang", latencyMs: quick };
  const roll = calm ? 1 : dice();
  const latencyMs = 160 + dice() * 240;
  if (roll < RESETS) return { kind: "reset", latencyMs: quick };
  if (roll < ERRORS) return { kind: "error", latencyMs };
  return { kind: "ok", latencyMs: roll < SLOW ? latencyMs * 2 : latencyMs };
}
