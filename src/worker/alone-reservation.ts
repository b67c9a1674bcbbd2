// A worker's part in the reservation for jobs with one crash left: asks for it, renews it, gives it up.
// core/reservation.ts decides; the reservation is a cell of the store, written by compare-and-set.
import {
  isToBeAlone,
  mayReserve,
  pauseAfter,
  RESERVATION_CELL,
  RESERVED_MS,
  reservationFrom,
  reservedStep,
} from "../core/reservation.ts";
import type { Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import type { WorkerIdentity } from "./dependencies.ts";
import type { InFlight } from "./in-flight.ts";

/** How often a worker asks whether it may reserve itself. */
const ASK_MS = 1_000;
const NEVER = Number.NEGATIVE_INFINITY;

/** What a reservation needs. */
export interface AloneReservationOptions {
  readonly store: Pick<Store, "cells" | "setCells">;
  readonly system: Pick<System, "monotonic">;
  readonly log: Log;
  readonly self: Readonly<Pick<WorkerIdentity, "id">>;
  readonly inFlight: Pick<InFlight, "isIdle" | "aloneMs" | "free">;
}

/** The reservation as this worker last wrote it. */
interface Held {
  readonly sinceMs: number;
  readonly version: number;
  readonly writtenMs: number;
  readonly isWaiting: boolean;
}

/** The reservation of one worker. */
export class AloneReservation {
  readonly #options: AloneReservationOptions;
  #held: Held | null = null;
  #askedMs = NEVER;
  #notBeforeMs = NEVER;
  #beside: "no" | "may" | "has" = "no";

  constructor(options: AloneReservationOptions) {
    this.#options = options;
  }

  /** True while this worker takes no other work. */
  get isReserved(): boolean {
    return this.#held !== null || isToBeAlone(this.#options.inFlight.aloneMs);
  }

  /** True if a job with one crash left may be taken now. */
  get mayTake(): boolean {
    const { inFlight } = this.#options;
    if (this.#held === null || inFlight.aloneMs !== null) return false;
    return inFlight.isIdle || (this.#beside === "may" && inFlight.free > 0);
  }

  /** Records that such a job was taken. */
  taken(): void {
    if (this.#beside === "may") this.#beside = "has";
  }

  /**
   * Decides again after a look at the lanes: `dueMs` is how long such a job has been due, null for none; `now` is the
   * store's time.
   */
  async look(dueMs: number | null, now: number): Promise<void> {
    const { inFlight, log, system } = this.#options;
    const nowMs = system.monotonic();
    const held = this.#held;
    if (held === null) return dueMs === null ? undefined : this.#ask(nowMs);
    const { aloneMs, isIdle } = inFlight;
    const hasRunBeside = this.#beside === "has";
    const step = reservedStep({ heldMs: nowMs - held.sinceMs, aloneMs, isIdle, dueMs, hasRunBeside });
    if (step === "let go") return this.letGo();
    if (step === "run beside" && this.#beside === "no") {
      this.#beside = "may";
      log.warn({ dueMs }, "a job with one crash left has waited long enough: it runs beside the other runs");
    }
    const isWaiting = aloneMs === null && !isIdle;
    if (nowMs - held.writtenMs < RESERVED_MS / 2 && isWaiting === held.isWaiting) return;
    this.#held = await this.#write(held.version, held.sinceMs, now, isWaiting);
  }

  /** Gives the reservation up, if there is one. */
  async letGo(): Promise<void> {
    const held = this.#held;
    if (held === null) return;
    const nowMs = this.#options.system.monotonic();
    this.#held = null;
    this.#beside = "no";
    this.#notBeforeMs = nowMs + pauseAfter(nowMs - held.sinceMs);
    await this.#options.store.setCells([{ ...RESERVATION_CELL, version: held.version, value: null }]);
  }

  async #ask(nowMs: number): Promise<void> {
    const { store, self, inFlight, log } = this.#options;
    if (nowMs < this.#notBeforeMs || nowMs - this.#askedMs < ASK_MS) return;
    this.#askedMs = nowMs;
    const { cells, now } = await store.cells([RESERVATION_CELL]);
    const [cell] = cells;
    const current = cell ? reservationFrom(cell.value) : null;
    if (!mayReserve(current, { worker: self.id, isIdle: inFlight.isIdle }, now)) return;
    this.#held = await this.#write(cell?.version ?? 0, nowMs, now, !inFlight.isIdle);
    if (this.#held) log.info({}, "this worker takes no other work until it has run a job with one crash left");
  }

  /** Writes the reservation; null if another worker was first. */
  async #write(version: number, sinceMs: number, now: number, isWaiting: boolean): Promise<Held | null> {
    const { store, system, self } = this.#options;
    const value = JSON.stringify({ worker: self.id, until: now + RESERVED_MS, isWaiting });
    const [isWritten] = await store.setCells([{ ...RESERVATION_CELL, version, value }]);
    return isWritten ? { sinceMs, version: version + 1, writtenMs: system.monotonic(), isWaiting } : null;
  }
}
