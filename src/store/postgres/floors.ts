// Where to begin in each lane while the heads of lanes are slow to find. A transaction that stays open keeps the index
// entries of every job taken since, and a search for the head of a lane steps over all of them. So a slow full look
// notes where the heads are, and for a second every search of a lane begins there, or where the last claim ended. A job
// committed late below its floor waits for at most that second; an empty look is repeated in full, so that a floor
// never makes a lane look empty.
import type { System } from "../../system/system.ts";

/** A position in a lane, in the order in which its jobs are taken. */
export interface Position {
  readonly runAt: number;
  readonly seq: number;
}

/** A range of lanes to look at: from a position in a lane on, up to another lane. */
export interface Stretch extends Position {
  readonly lane: number;
  readonly below: number | string;
}

/** The result of a full look. */
export interface FullLook {
  readonly after: number;
  /** The last lane it looked at; null if there are no more. */
  readonly through: number | null;
  readonly heads: ReadonlyMap<number, Position>;
  /** Lanes that may have become empty; those of them without a head begin at `now`. */
  readonly known: Iterable<number>;
  readonly now: number;
  readonly tookMs: number;
}

/** The floors of a process. */
export interface Floors {
  /** Where to begin in a lane. */
  at(lane: number): Position;
  /** The lanes after this one, cut where a floor is. */
  stretches(after: number): Stretch[];
  /** Notes where lanes begin if the look was slow. */
  looked(look: FullLook): void;
  /** Notes that a claim has taken everything of the lane up to here, except what others hold. */
  took(lane: number, position: { readonly runAt: number; readonly seq: number }): void;
  forget(): void;
}

/** Longer than an undisturbed look takes, and what each lane may add to it. */
const SLOW_MS = 10;
const LANE_MS = 0.1;
/** How long a floor is used. */
const LAST_MS = 1_000;
/** Most floors: each costs a step of every look. */
const MOST = 2_000;
const GREATEST_BIGINT = "9223372036854775807";
/** The beginning of every lane: no job was due before 1970, and none has a number below 1. */
export const BOTTOM: Position = { runAt: 0, seq: 0 };

/** No floors yet; a look that takes longer than this makes some. */
export function openFloors(system: Pick<System, "monotonic">, slowMs = SLOW_MS): Floors {
  const floors = new Map<number, Position>();
  let until = Number.NEGATIVE_INFINITY;
  const inForce = (): boolean => floors.size > 0 && system.monotonic() < until;
  return {
    at: (lane) => (inForce() ? floors.get(lane) : undefined) ?? BOTTOM,
    stretches(after) {
      const lanes = inForce() ? [...floors.keys()].filter((lane) => lane > after).sort((a, b) => a - b) : [];
      const below = (at: number): number | string => lanes[at] ?? GREATEST_BIGINT;
      return [
        { lane: after + 1, ...BOTTOM, below: below(0) },
        ...lanes.map((lane, at) => ({ lane, ...(floors.get(lane) as Position), below: below(at + 1) })),
      ];
    },
    looked({ after, through, heads, known, now, tookMs }) {
      if (!inForce()) floors.clear();
      if (tookMs < slowMs + heads.size * LANE_MS) return;
      if (floors.size === 0) until = system.monotonic() + LAST_MS;
      for (const [lane, position] of heads) if (floors.size < MOST) floors.set(lane, position);
      for (const lane of known) {
        const seen = lane > after && (through === null || lane <= through);
        if (seen && !heads.has(lane) && floors.size < MOST) floors.set(lane, { runAt: now, seq: BOTTOM.seq });
      }
    },
    took(lane, position) {
      const floor = floors.get(lane);
      if (floor && position.runAt >= floor.runAt) floors.set(lane, position);
    },
    forget: () => floors.clear(),
  };
}
