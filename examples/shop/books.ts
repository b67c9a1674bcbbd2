// The books of the demo, as a pure function: what was enqueued, what the store says, what the workers reported and what
// the service carried out, in; whether all of it agrees, out. Every number is counted in another place than the one it is
// compared with.
import type { State } from "redrive";
import type { Evening } from "./evening.ts";

/** What a kill did. */
export interface Takeover {
  readonly pid: number;
  /** Jobs the killed worker held, and those whose run had begun. */
  readonly jobs: readonly string[];
  readonly started: number;
  /** From the kill until the last of them was back in the queue. */
  readonly ms: number;
}

/** Everything that was counted. */
export interface BooksEvidence {
  /** Jobs that were to be enqueued. */
  readonly planned: number;
  /** Ids as the producer got them. */
  readonly enqueued: readonly string[];
  /** Every job in the store. */
  readonly jobs: readonly { readonly id: string; readonly state: State }[];
  /** Ids of the dead letters in the store. */
  readonly deadLetters: readonly string[];
  /** How often workers reported each job as completed; a killed one may not have come to it. */
  readonly completions: ReadonlyMap<string, number>;
  /** How often the service carried out what each job asked for. */
  readonly effects: ReadonlyMap<string, number>;
  /** How often it was asked again for what it had carried out. */
  readonly repeats: ReadonlyMap<string, number>;
  /** Calls that met the outage, by the service's books; attempts charged for them, by the workers'; and how many may be. */
  readonly outage: { readonly calls: number; readonly charged: number; readonly most: number };
  readonly takeover: Takeover | null;
  /** The redrives of the evening; null where the day left no letter of the bug. */
  readonly evening: Evening | null;
}

/** One line of the books. */
export interface Check {
  readonly name: "sum" | "lost" | "open" | "twice" | "letters" | "service" | "outage" | "takeover" | "redrive";
  readonly ok: boolean;
  readonly text: string;
}

/** The result. */
export interface Books {
  readonly balanced: boolean;
  readonly enqueued: number;
  readonly completed: number;
  readonly dead: number;
  /** Enqueued, and not to be found. */
  readonly lost: readonly string[];
  /** In no final state. */
  readonly open: readonly string[];
  readonly completedTwice: readonly string[];
  /** Called at the service again after it had been carried out, and carried out once all the same. */
  readonly ranTwice: number;
  /** What a killed worker left behind, counted; null if none was killed. */
  readonly takeover: (Omit<Takeover, "jobs"> & { readonly jobs: number }) | null;
  readonly checks: readonly Check[];
}

/** Balances the books. */
export function balance(evidence: BooksEvidence): Books {
  const { planned, enqueued, jobs, completions, effects, repeats, takeover } = evidence;
  const stateOf = new Map(jobs.map(({ id, state }) => [id, state]));
  const inState = (...states: State[]): string[] =>
    jobs.filter(({ state }) => states.includes(state)).map(({ id }) => id);
  const completed = inState("completed");
  const dead = inState("dead");
  const open = inState("queued", "running", "cancelled");
  const wanted = new Set(enqueued);
  const lost = enqueued.filter((id) => !stateOf.has(id));
  const strangers = jobs.filter(({ id }) => !wanted.has(id)).length;
  const twice = [...completions]
    .filter(([id, times]) => times > 1 || stateOf.get(id) !== "completed")
    .map(([id]) => id);
  const wrongEffects = completed.filter((id) => effects.get(id) !== 1).length;
  const reported = completed.filter((id) => completions.has(id)).length;
  const unheard = completed.length - reported;
  const extraEffects = [...effects].filter(([, times]) => times > 1).length;
  const short = planned === enqueued.length ? "" : ` of ${planned} planned`;
  const checks: Check[] = [
    {
      name: "sum",
      ok: [wanted.size, enqueued.length, completed.length + dead.length].every((sum) => sum === planned),
      text: `${enqueued.length} enqueued${short} = ${completed.length} completed + ${dead.length} dead`,
    },
    {
      name: "lost",
      ok: lost.length === 0 && strangers === 0,
      text: `${lost.length} lost: ${lost.length === 0 ? "every id that was enqueued is in the file" : `as ${lost[0]}`}${strangers > 0 ? `, and ${strangers} that were never enqueued` : ""}`,
    },
    openCheck(open),
    {
      name: "twice",
      ok: twice.length === 0,
      text: `${twice.length} completed twice: ${reported} reported by workers${unheard > 0 ? ` and ${unheard} by the killed one's last write` : ""}`,
    },
    lettersCheck(dead, evidence.deadLetters),
    {
      name: "service",
      ok: wrongEffects === 0 && extraEffects === 0,
      text: `${completed.length - wrongEffects} of ${completed.length} carried out exactly once, by the service's own books`,
    },
    outageCheck(evidence.outage),
    ...(evidence.evening === null ? [] : [redriveCheck(evidence.evening)]),
  ];
  return {
    balanced: checks.every(({ ok }) => ok) && (takeover === null || takeoverCheck(takeover, stateOf, 0).ok),
    enqueued: enqueued.length,
    completed: completed.length,
    dead: dead.length,
    lost,
    open,
    completedTwice: twice,
    ranTwice: repeats.size,
    takeover: takeover && { ...takeover, jobs: takeover.jobs.length },
    checks: takeover === null ? checks : [...checks, takeoverCheck(takeover, stateOf, repeats.size)],
  };
}

function openCheck(open: readonly string[]): Check {
  const which = open.length === 0 ? "nothing waits and nothing runs" : `waiting or running, as ${open[0]}`;
  return { name: "open", ok: open.length === 0, text: `${open.length} open: ${which}` };
}

function lettersCheck(dead: readonly string[], letters: readonly string[]): Check {
  const ids = new Set(letters);
  const ok = letters.length === dead.length && ids.size === dead.length && dead.every((id) => ids.has(id));
  return { name: "letters", ok, text: `${letters.length} dead letters for ${dead.length} dead jobs` };
}

/** An outage costs what it takes to notice it, however long it lasts and however much work waits for its end. */
function outageCheck({ calls, charged, most }: BooksEvidence["outage"]): Check {
  const text = `outage: ${charged} attempts charged, at most ${most}; ${calls - charged} calls not charged`;
  return { name: "outage", ok: charged <= calls && charged <= most, text };
}

/** Before the fix no more than the canary may run; after it, every letter of the bug completes. */
function redriveCheck({ letters, before, after }: Evening): Check {
  const { sent, recalled } = before.counts;
  const ok =
    before.state === "stopped" &&
    sent - recalled <= 1 &&
    after.state === "completed" &&
    after.counts.completed === letters;
  const text = `redrive: ${before.state} after ${sent} of ${letters} with the bug, then ${after.counts.completed} of ${letters} completed with the fix`;
  return { name: "redrive", ok, text };
}

/** Whatever a killed worker held must have come to an end elsewhere. */
function takeoverCheck({ pid, jobs, started, ms }: Takeover, stateOf: Map<string, State>, again: number): Check {
  const ok = jobs.every((id) => ["completed", "dead"].includes(stateOf.get(id) ?? ""));
  const ran = again === 0 ? `${started} were in mid-run` : `${again} ran twice, ended once`;
  const text = `kill -9 of ${pid}: ${jobs.length} jobs taken over after ${ms} ms; ${ran}`;
  return { name: "takeover", ok, text };
}
