// Tells the story of the breakers: looks at what the fleet agrees on about each service, puts it on the board, and says
// what changed: opened, probed, closed, back at full load.
import { formatDuration } from "../../core/duration.ts";
import { recordFrom, type ServiceRecord } from "../../core/service-record.ts";
import type { Control } from "../../store/store.ts";
import { counted } from "../format.ts";
import type { Board, BreakerNow } from "./board.ts";
import { type ServiceName, SERVICES } from "./weather.ts";

type Breaker = ServiceRecord["breaker"];

/** Watches the breakers. */
export class DemoBreakers {
  readonly #board: Board;
  readonly #before = new Map<ServiceName, Breaker>();

  constructor(board: Board) {
    this.#board = board;
  }

  /** Looks at what the store says now. */
  tick({ services, now }: Control): void {
    for (const service of SERVICES) {
      const value = services.find(({ name }) => name === service)?.value;
      if (value === undefined) continue;
      const { breaker, holdUntil } = recordFrom(value);
      const before = this.#board.breakers[service] ?? "closed";
      const state = stateOf(breaker, now);
      this.#board.breakers[service] = state;
      if (breaker.state !== "closed") this.#board.heldBack(service, "parked");
      else if (holdUntil > now) this.#board.heldBack(service, "limited");
      this.#tell(service, breaker, before === "ramp" && state === "closed");
      this.#before.set(service, breaker);
    }
  }

  #tell(service: ServiceName, breaker: Breaker, rampIsOver: boolean): void {
    const { news } = this.#board;
    const before = this.#before.get(service);
    if (rampIsOver) news.tell("good", `${service} has its full load again`);
    if (before === undefined ? breaker.state === "closed" : before.since === breaker.since) return;
    if (breaker.state === "open" && breaker.reason === "a probe failed") {
      const next = formatDuration(breaker.until - breaker.since);
      return news.gather("probe", "wait", service, ({ length }) => {
        return `${counted(length, "probe")} of ${service} failed, uncharged; the next one ${next} later`;
      });
    }
    if (breaker.state === "open")
      news.tell("bad", `breaker of ${service} opens, ${breaker.reason}: its jobs are parked`);
    if (breaker.state === "closed" && before !== undefined) {
      news.tick((key) => key === "probe");
      news.tell("good", `probes succeed: breaker of ${service} closes, jobs return on a ramp`);
    }
  }
}

function stateOf(breaker: Breaker, now: number): BreakerNow {
  if (breaker.state === "closed") return breaker.rampUntil > now ? "ramp" : "closed";
  return breaker.state === "half_open" ? "probe" : "open";
}
