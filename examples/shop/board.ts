// Everything the views show, in one place: counts, the workers, what the services did over time, why jobs died, and the
// news. The conductor writes it, the views only read it.
import type { FailureClass, State } from "redrive";
import type { CrewMember, CrewReport } from "./crew.ts";
import type { News } from "./news.ts";
import type { Answered } from "./service.ts";
import { type ServiceName, SERVICES } from "./weather.ts";

/** The width of one block of the history, in milliseconds. */
export const CELL_MS = 500;

/** How a service did in one block of time; the worst that happened often enough names it. */
export type BoardHealth = "idle" | "ok" | "errors" | "limited" | "parked" | "down";

/** How a breaker is, as people see it. */
export type BreakerNow = "closed" | "open" | "probe" | "ramp";

/** Dead jobs of one cause. */
export interface CauseLine {
  readonly class: FailureClass;
  readonly message: string;
  count: number;
}

interface Cell {
  good: number;
  bad: number;
  limited: number;
  down: number;
  held: Held | null;
}

/** Why the work of a service is held back. */
export type Held = "limited" | "parked";

const EMPTY: Cell = { good: 0, bad: 0, limited: 0, down: 0, held: null };

/** What the views see. */
export class Board {
  readonly total: number;
  readonly seed: number;
  readonly news: News;
  members: readonly CrewMember[] = [];
  enqueued = 0;
  retries = 0;
  counts: Readonly<Record<State, number>> = { queued: 0, running: 0, completed: 0, dead: 0, cancelled: 0 };
  readonly causes = new Map<string, CauseLine>();
  readonly done: number[] = [];
  readonly failed: number[] = [];
  readonly calls: Record<ServiceName, number> = { payments: 0, media: 0, mail: 0, crm: 0 };
  /** How the breaker of each service is. */
  readonly breakers: Partial<Record<ServiceName, BreakerNow>> = {};
  readonly #open: Record<ServiceName, Set<string>> = {
    payments: new Set(),
    media: new Set(),
    mail: new Set(),
    crm: new Set(),
  };
  readonly #cells: Record<ServiceName, Cell[]> = { payments: [], media: [], mail: [], crm: [] };
  /** When each job that waits for its next try may have it. */
  readonly #dueAt = new Map<string, number>();
  readonly #elapsed: () => number;

  constructor(options: {
    readonly total: number;
    readonly seed: number;
    readonly news: News;
    readonly elapsed: () => number;
  }) {
    this.total = options.total;
    this.seed = options.seed;
    this.news = options.news;
    this.#elapsed = options.elapsed;
  }

  /** Milliseconds since the day began. */
  get elapsedMs(): number {
    return this.#elapsed();
  }

  /** Jobs that wait for their next try. */
  get retrying(): number {
    const now = this.#elapsed();
    let waiting = 0;
    for (const dueAt of this.#dueAt.values()) if (dueAt > now) waiting += 1;
    return Math.min(waiting, this.counts.queued);
  }

  /** Blocks of time so far. */
  get cells(): number {
    return Math.floor(Math.max(0, this.#elapsed()) / CELL_MS) + 1;
  }

  answered({ service, kind }: Answered): void {
    this.calls[service] += 1;
    const cell = this.#cellOf(service);
    if (kind === "ok" || kind === "repeat" || kind === "refused") cell.good += 1;
    else if (kind === "limited") cell.limited += 1;
    else if (kind === "down") cell.down += 1;
    else cell.bad += 1;
  }

  /** A job of a service was enqueued. */
  entered(id: string, service: ServiceName): void {
    this.#open[service].add(id);
  }

  /** The work of a service is held back at this moment. */
  heldBack(service: ServiceName, held: Held): void {
    this.#cellOf(service).held = held;
  }

  /** Jobs that could run if the breaker of the service let them. */
  parkedOf(service: ServiceName): number {
    const breaker = this.breakers[service];
    if (breaker !== "open" && breaker !== "probe") return 0;
    const now = this.#elapsed();
    return [...this.#open[service]].filter((id) => (this.#dueAt.get(id) ?? 0) <= now).length;
  }

  /** The same of all services. */
  get parked(): number {
    return SERVICES.reduce((sum, service) => sum + this.parkedOf(service), 0);
  }

  reported({ id, outcome, delayMs, failure }: CrewReport): void {
    const at = this.cells - 1;
    if (outcome === "completed") this.done[at] = (this.done[at] ?? 0) + 1;
    if (outcome === "retried" || outcome === "dead") this.failed[at] = (this.failed[at] ?? 0) + 1;
    if (outcome === "retried") {
      this.retries += 1;
      this.#dueAt.set(id, this.#elapsed() + delayMs);
    } else this.#dueAt.delete(id);
    if (outcome === "completed" || outcome === "dead") for (const name of SERVICES) this.#open[name].delete(id);
    if (outcome !== "dead" || !failure) return;
    const known = this.causes.get(failure.fingerprint);
    if (known) known.count += 1;
    else this.causes.set(failure.fingerprint, { class: failure.class, message: failure.message, count: 1 });
  }

  #cellOf(service: ServiceName): Cell {
    return (this.#cells[service][this.cells - 1] ??= { ...EMPTY });
  }

  /** How a service did, block by block, from the first. */
  healthOf(service: ServiceName): BoardHealth[] {
    return Array.from({ length: this.cells }, (_, at) => healthOf(this.#cells[service][at]));
  }

  /** The causes of death, most frequent first. */
  get worstCauses(): CauseLine[] {
    return [...this.causes.values()].sort((a, b) => b.count - a.count);
  }
}

function healthOf(cell: Cell | undefined): BoardHealth {
  if (!cell) return "idle";
  if (cell.down > 0) return "down";
  if (cell.limited > 0 || cell.held === "limited") return "limited";
  if (cell.held === "parked" && cell.good === 0) return "parked";
  return cell.bad > 0 ? "errors" : "ok";
}
