// What the history says about how much a worker holds (R19): claimed and not settled, never more than twice its slots and
// what it settles in a tenth of a second, of which no more than 5,000 count. Judges only workers whose store says before
// every claim how much that is.
import type { Store } from "../../../src/store/store.ts";
import type { HistoryEvent, Line } from "./event.ts";
import type { Ledger, Track } from "./ledger.ts";

const BEYOND_MOST = 5_000;
const HORIZON_MS = 100;

/** What every worker holds. */
export class InHand {
  readonly #ledger: Ledger;
  /** How much each worker may hold by its last word, and the runs that it has claimed and not settled. */
  readonly #holders = new Map<string, { most: number; readonly held: Set<string> }>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** A worker is about to claim, and may hold so much. */
  onMayHold({ worker, count }: HistoryEvent): void {
    if (worker === null) return;
    const known = this.#holders.get(worker);
    if (known) known.most = count;
    else this.#holders.set(worker, { most: count, held: new Set() });
  }

  onClaimed(track: Track, { worker, epoch }: HistoryEvent): void {
    const holder = worker === null ? undefined : this.#holders.get(worker);
    if (!holder) return;
    holder.held.add(`${track.id}/${epoch}`);
    if (holder.held.size <= holder.most) return;
    const says = `${holder.held.size} jobs claimed and not settled, where ${holder.most} are allowed`;
    this.#ledger.flag("R19", `worker ${worker} holds ${says}`, track.id);
  }

  /** A run is over, or it is not this worker's any more. */
  onOver(track: Track, worker: string | null, epoch: number): void {
    if (worker !== null) this.#holders.get(worker)?.held.delete(`${track.id}/${epoch}`);
  }
}

/** What is needed to say how much a worker may hold. */
interface Held {
  readonly slots: number;
  readonly monotonic: () => number;
  readonly write: (line: Line) => void;
}

/** The store of a worker with so many slots, which says before every claim how much the worker may hold. */
export function sayingMayHold(store: Store, { slots, monotonic, write }: Held): Store {
  const settled: { readonly at: number; readonly jobs: number }[] = [];
  let [open, since, totalMs] = [0, 0, 0];
  // The most since the last claim was answered: a worker decides how much to claim at some time after that.
  let most = 0;
  // A clock that stops while nothing is being settled.
  const settlingMs = (): number => totalMs + (open > 0 ? monotonic() - since : 0);
  const during = async <T>(call: () => Promise<T>): Promise<T> => {
    if (open++ === 0) since = monotonic();
    try {
      return await call();
    } finally {
      if (--open === 0) totalMs += monotonic() - since;
    }
  };
  const lately = (): number => {
    while ((settled[0]?.at ?? Number.POSITIVE_INFINITY) < settlingMs() - HORIZON_MS) settled.shift();
    return Math.ceil(settled.reduce((sum, { jobs }) => sum + jobs, 0));
  };
  return {
    ...store,
    async settle(request) {
      const sentAt = monotonic();
      const answer = await during(() => store.settle(request));
      const jobs = request.settlements.filter(({ verdict }) => verdict.kind !== "progress").length;
      const tookMs = Math.max(HORIZON_MS, monotonic() - sentAt);
      settled.push({ at: settlingMs(), jobs: (jobs * HORIZON_MS) / tookMs });
      most = Math.max(most, lately());
      return answer;
    },
    async claim(request) {
      write({ answer: "may_hold", worker: request.worker, count: 2 * slots + Math.min(BEYOND_MOST, most) });
      try {
        return await store.claim(request);
      } finally {
        most = lately();
      }
    },
  };
}
