// How long it took after faults until every worker was busy again: until each had taken work with a claim that it sent
// after the last fault had ended.

/** A worker's word that it took work: when the claim was sent, and when it was answered, by the machine's clock. */
export interface Busy {
  readonly sentAt: number;
  readonly answeredAt: number;
}

/** The longest that workers took. */
export interface Longest {
  readonly ms: number;
  readonly worker: string;
  /** The last fault before it. */
  readonly fault: string;
}

/** Watches workers come back to their work. */
export class BusyWatch {
  readonly #workers: readonly string[];
  readonly #idle = new Set<string>();
  #overAt = 0;
  #fault = "none";
  longest: Longest = { ms: 0, worker: "none", fault: "none" };

  constructor(workers: readonly string[]) {
    this.#workers = workers;
  }

  /** A fault is over now; whoever was busy before it must be so again. */
  over(fault: string): void {
    this.#overAt = Date.now();
    this.#fault = fault;
    for (const worker of this.#workers) this.#idle.add(worker);
  }

  onBusy(worker: string, { sentAt, answeredAt }: Busy): void {
    if (sentAt < this.#overAt || !this.#idle.delete(worker)) return;
    const ms = answeredAt - this.#overAt;
    if (ms > this.longest.ms) this.longest = { ms, worker, fault: this.#fault };
  }

  /** Workers that were not busy since. */
  get idle(): readonly string[] {
    return [...this.#idle];
  }
}
