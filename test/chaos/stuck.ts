// How long jobs were stuck in the hands of a process that was killed: from the kill until somebody took them back, and
// until they ran elsewhere.
import type { HistoryEvent } from "../support/history/event.ts";

/** Watches events for jobs whose worker died. */
export class StuckWatch {
  readonly #held = new Map<string, Set<string>>();
  readonly #holder = new Map<string, string>();
  readonly #waiting = new Map<string, { readonly since: number; takenBack: boolean }>();
  longestMs = 0;
  longestUntilTakenBackMs = 0;
  longestJob: string | null = null;

  read(at: number, event: HistoryEvent): void {
    const { op, phase, job, worker, answer } = event;
    if (op === "gone" && worker !== null) this.#onGone(at, worker);
    if (phase !== "ok" || job === null) return;
    if (op === "claim" && worker !== null) this.#onClaim(at, job, worker);
    if (op === "settle" && answer !== "progress") this.#onSettled(at, job, answer);
  }

  #onGone(at: number, worker: string): void {
    for (const job of this.#held.get(worker) ?? []) this.#waiting.set(job, { since: at, takenBack: false });
    this.#held.delete(worker);
  }

  #onClaim(at: number, job: string, worker: string): void {
    const waited = this.#waiting.get(job);
    if (waited !== undefined && at - waited.since > this.longestMs * 1e6) {
      this.longestMs = (at - waited.since) / 1e6;
      this.longestJob = job;
    }
    this.#waiting.delete(job);
    this.#holder.set(job, worker);
    const held = this.#held.get(worker);
    if (held === undefined) this.#held.set(worker, new Set([job]));
    else held.add(job);
  }

  #onSettled(at: number, job: string, answer: string | null): void {
    const waited = this.#waiting.get(job);
    if (waited !== undefined && !waited.takenBack) {
      waited.takenBack = true;
      this.longestUntilTakenBackMs = Math.max(this.longestUntilTakenBackMs, (at - waited.since) / 1e6);
      if (answer === "dead" || answer === "cancel") this.#waiting.delete(job);
    }
    this.#held.get(this.#holder.get(job) ?? "")?.delete(job);
    this.#holder.delete(job);
  }
}
