// Forged histories about redrive runs: sends apart from the record, after a pause, by two drivers, and wrong books (R21). Each
// must be flagged.
import type { FinalRun } from "../support/history/event.ts";
import type { Forge } from "./forge.ts";
import type { Forgery } from "./forged-jobs.ts";

const RUN = "r_1";
const BOOKS: FinalRun = { id: RUN, sent: 0, recalled: 0, left: 0, pending: 0, unheard: 0, missed: [] };

/** Forgeries about redrive runs. */
export const REDRIVE_FORGERIES: readonly Forgery[] = [
  ["R21", "a letter is sent apart from the record", (f) => (record(f, 0), sent(f, "a", -1))],
  ["R21", "a letter is sent by a record that is paused", (f) => (record(f, 0, "paused"), sent(f, "a", 1))],
  ["R21", "a driver that had read the run before sends after a pause", (f) => lateDriver(f)],
  ["R21", "two drivers change the record at one version", (f) => (record(f, 0), record(f, 1), record(f, 1))],
  [
    "R21",
    "a run counts a letter as sent twice",
    (f) => (once(f), (f.redrives = [{ ...BOOKS, sent: 2, left: 2, pending: 2 }])),
  ],
  ["R21", "a run does not count what it has sent", (f) => (once(f), (f.redrives = [BOOKS]))],
  [
    "R21",
    "a run counts a recall that never was",
    (f) => (once(f), (f.redrives = [{ ...BOOKS, sent: 1, recalled: 1 }])),
  ],
  ["R21", "what was sent is neither taken nor recalled nor waiting", (f) => (f.redrives = [{ ...BOOKS, left: 1 }])],
  ["R21", "a job has ended and its letter has no outcome", (f) => (f.redrives = [{ ...BOOKS, unheard: 1 }])],
  ["R21", "a run is complete and has left a letter out", (f) => (f.redrives = [{ ...BOOKS, missed: ["a (1)"] }])],
];

/** The record of the run is written where it has this version. */
function record(f: Forge, ticket: number, answer = "running"): void {
  f.call("record", { run: RUN, ticket, answer }, "ok", {});
}

/** A letter goes back to work, and the record of this version with it. */
function sent(f: Forge, id: string, ticket: number): void {
  f.dead(id);
  f.redrive(id, "redriven", { run: RUN, ticket });
  if (ticket >= 0) f.call("redrive", { run: RUN, ticket, answer: "running" }, "ok", {});
  f.settle(f.claim(id), "complete");
}

/** A good run of one letter. */
export function once(f: Forge): void {
  record(f, 0);
  sent(f, "a", 1);
  f.redrives = [{ ...BOOKS, sent: 1 }];
}

function lateDriver(f: Forge): void {
  record(f, 0);
  record(f, 1, "paused");
  f.dead("a");
  f.redrive("a", "redriven", { run: RUN, ticket: 1 });
  f.settle(f.claim("a"), "complete");
}
