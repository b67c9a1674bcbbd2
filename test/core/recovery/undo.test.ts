// What undo makes of a job, as a table: what its versions, its letters and its state say together.
import { describe, expect, it } from "vitest";
import type { LetterOutcome } from "../../../src/core/job.ts";
import { undoOf, type UndoVersion } from "../../../src/core/recovery/undo.ts";

const of = (payload: string, generation: number, by: Partial<UndoVersion> = {}): UndoVersion => ({
  payload,
  at: 100 * generation - 50,
  generation,
  actor: null,
  redrive: null,
  ...by,
});
const ada = { actor: "ada" };
const letters = (...outcomes: (LetterOutcome | null)[]) =>
  outcomes.map((outcome, at) => ({ generation: at + 1, outcome, diedAt: 100 * at + 100 }));

type Case = [string, ReturnType<typeof undoOf>, Parameters<typeof undoOf>];
const dead = (generation: number, payload: string) => ({ state: "dead", generation, payload }) as const;
const queued = (generation: number, payload: string) => ({ state: "queued", generation, payload }) as const;
const FIRST = of("1", 1);
/** A repair of the first death that a program of schema version 2 wrote. */
const byTwo = of("2", 2, { ...ada, generation: null });

const CASES: Case[] = [
  ["a job that never changed", { refused: "nothing" }, [dead(1, "1"), [], letters(null)]],
  ["a repaired job", { payload: "1" }, [dead(1, "2"), [FIRST, of("2", 2, ada)], letters(null)]],
  [
    "a job that was undone",
    { refused: "nothing" },
    [dead(1, "1"), [FIRST, of("2", 2, ada), of("1", 2, ada)], letters(null)],
  ],
  ["one repaired twice", { payload: "1" }, [dead(1, "3"), [FIRST, of("2", 2, ada), of("3", 2, ada)], letters(null)]],
  ["one that waits again", { payload: "1" }, [queued(2, "2"), [FIRST, of("2", 2, ada)], letters(null)]],
  [
    "one that a run has sent",
    { payload: "1" },
    [queued(2, "2"), [FIRST, of("2", 2, { redrive: "r_1" })], letters(null)],
  ],
  [
    "one that runs",
    { refused: "state" },
    [{ ...queued(2, "2"), state: "running" }, [FIRST, of("2", 2, ada)], letters(null)],
  ],
  [
    "one that is completed",
    { refused: "state" },
    [{ ...queued(2, "2"), state: "completed" }, [FIRST, of("2", 2, ada)], letters("completed")],
  ],
  ["one that died again", { refused: "taken" }, [dead(2, "2"), [FIRST, of("2", 2, ada)], letters("dead", null)]],
  ["one that was recalled", { payload: "1" }, [dead(2, "2"), [FIRST, of("2", 2, ada)], letters("recalled", null)]],
  [
    "one that was recalled and waits again",
    { payload: "1" },
    [queued(3, "2"), [FIRST, of("2", 2, ada)], letters("recalled", null)],
  ],
  [
    "one that died again and was recalled later",
    { refused: "taken" },
    [dead(3, "2"), [FIRST, of("2", 2, ada)], letters("dead", "recalled", null)],
  ],
  [
    "one that was repaired after it died again",
    { payload: "1" },
    [dead(2, "3"), [FIRST, of("2", 2, ada), of("3", 3, ada)], letters("dead", null)],
  ],
  ["one whose letters are deleted", { refused: "taken" }, [dead(2, "2"), [FIRST, of("2", 2, ada)], []]],
  [
    "one whose producer sent another",
    { refused: "replaced" },
    [queued(2, "3"), [FIRST, of("2", 2, ada), of("3", 2)], letters(null)],
  ],
  [
    "one whose producer sent the same",
    { refused: "replaced" },
    [queued(2, "2"), [FIRST, of("2", 2, ada), of("2", 2)], letters(null)],
  ],
  [
    "one whose producer sent another without a version",
    { refused: "replaced" },
    [queued(2, "3"), [FIRST, of("2", 2, ada)], letters(null)],
  ],
  [
    "one repaired after its producer sent another",
    { payload: "3" },
    [dead(2, "4"), [FIRST, of("2", 2, ada), of("3", 2), of("4", 3, ada)], letters("dead", null)],
  ],
  ["one repaired by version 2", { payload: "1" }, [dead(1, "2"), [FIRST, byTwo], letters(null)]],
  [
    "one repaired by version 2 that died again",
    { refused: "taken" },
    [dead(2, "2"), [FIRST, byTwo], letters("dead", null)],
  ],
  [
    "one repaired by version 2 that was recalled",
    { payload: "1" },
    [dead(2, "2"), [FIRST, byTwo], letters("recalled", null).map((letter) => ({ ...letter, diedAt: 100 }))],
  ],
  ["one repaired by version 2, without letters", { refused: "taken" }, [dead(2, "2"), [FIRST, byTwo], []]],
];

describe("undo of", () => {
  it.each(CASES)("%s", (_, decided, given) => expect(undoOf(...given)).toEqual(decided));
});
