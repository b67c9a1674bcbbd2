// What the history says about redrive runs (R21): one process changes the record of a run at a time, a run that is not
// running sends nothing, every letter that was sent is counted once, and a run that is complete has left none out.
import type { FinalDump, FinalRun, HistoryEvent } from "./event.ts";
import type { Ledger } from "./ledger.ts";

/** What is known of one run. */
interface RunTrack {
  /** The states of its record by the version of the cell, as far as their writes were confirmed. */
  readonly states: Map<number, string>;
  /** Where in the history it was confirmed that it does not run, and the version of that; null while it may run. */
  closed: { readonly at: number; readonly version: number } | null;
  /** Letters that were sent for certain. */
  readonly sent: Set<string>;
  /** Letters that calls without an answer may have sent. */
  readonly sending: Map<string, number>;
  /** Letters that it ever tried to send. */
  readonly tried: Set<string>;
}

/** Keeps what is known of every run. */
export class RedriveRuns {
  readonly #ledger: Ledger;
  readonly #runs = new Map<string, RunTrack>();
  /** Letters that were taken back for certain, and those that calls without an answer may have taken back. */
  readonly #recalled = new Set<string>();
  readonly #recalling = new Map<string, number>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** A write of a run's record, alone or together with a send; `ticket` is the version it expects. */
  onRecord(event: HistoryEvent): void {
    if (event.run === null || event.ticket < 0) return;
    const track = this.#track(event.run);
    // A run whose entry in the list was refused is deleted, and made again.
    if (event.answer === "deleted") return event.phase === "ok" ? track.states.clear() : undefined;
    const isRunning = event.answer === "running";
    const { closed } = track;
    // Only a process that has read the closed record may open it again.
    if (event.phase === "invoke" && isRunning && closed && event.ticket >= closed.version) track.closed = null;
    if (event.phase !== "ok") return;
    const before = track.states.get(event.ticket);
    if (event.op === "redrive" && before !== undefined && before !== "running")
      this.#flag(event.run, `sends by a record that says ${before}`);
    if (track.states.has(event.ticket + 1))
      this.#flag(event.run, `was changed twice at version ${event.ticket} of its record`);
    track.states.set(event.ticket + 1, event.answer ?? "");
    if (!isRunning) track.closed = { at: event.seq, version: event.ticket + 1 };
  }

  /** A letter that a run sends. */
  onSent(event: HistoryEvent): void {
    if (event.run === null) return;
    const track = this.#track(event.run);
    const letter = `${event.job}/${event.generation}`;
    note(track.sending, letter, event);
    track.tried.add(letter);
    if (event.phase !== "ok" || event.answer !== "redriven") return;
    track.sent.add(letter);
    if (track.states.size > 0 && event.ticket < 0) this.#flag(event.run, "sent a letter apart from its record");
    if (track.closed && track.closed.at < event.since) this.#flag(event.run, "sent a letter after it was closed");
  }

  /** A letter that is taken back; which run had sent it is not said. */
  onRecalled(event: HistoryEvent): void {
    const letter = `${event.job}/${event.generation}`;
    note(this.#recalling, letter, event);
    if (event.phase === "ok" && event.answer === "recalled") this.#recalled.add(letter);
  }

  finish({ redrives = [], drained }: FinalDump): void {
    for (const run of redrives) {
      const { id, sent, recalled, left, pending, unheard, missed } = run;
      if (left !== pending) this.#flag(id, `counts ${left} pending jobs, ${pending} letters are`);
      if (drained && unheard > 0) this.#flag(id, `has ${unheard} letters without an outcome whose jobs have ended`);
      if (missed.length > 0) this.#flag(id, `is complete and has not sent ${missed.slice(0, 3).join(", ")}`);
      const track = this.#track(id);
      this.#between(run, "sent", sent, track.sent, [...track.sent, ...track.sending.keys()]);
      const back = [...this.#recalled].filter((letter) => track.sent.has(letter));
      const maybe = [...this.#recalled, ...this.#recalling.keys()].filter((letter) => track.tried.has(letter));
      this.#between(run, "recalled", recalled, new Set(back), maybe);
    }
  }

  #between({ id }: FinalRun, what: string, count: number, sure: Set<string>, maybe: string[]): void {
    const most = new Set(maybe).size;
    if (count < sure.size || count > most)
      this.#flag(id, `counts ${count} letters as ${what}, there must be ${sure.size} to ${most}`);
  }

  #flag(id: string, message: string): void {
    this.#ledger.flag("R21", `the redrive run ${id} ${message}`, null);
  }

  #track(id: string): RunTrack {
    const known = this.#runs.get(id) ?? {
      states: new Map(),
      closed: null,
      sent: new Set(),
      sending: new Map(),
      tried: new Set(),
    };
    this.#runs.set(id, known);
    return known;
  }
}

/** Counts calls that were sent and are not answered; one without an answer stays. */
function note(open: Map<string, number>, letter: string, { phase }: HistoryEvent): void {
  if (phase === "unknown") return;
  const count = (open.get(letter) ?? 0) + (phase === "invoke" ? 1 : -1);
  if (count > 0) open.set(letter, count);
  else open.delete(letter);
}
