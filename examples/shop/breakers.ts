// Tells the story of the breakers: looks at what the fleet agrees on about each service, puts it on the board, and says
// what changed: opened, probed, closed, back at full load.
import type { BreakerView } from "redrive";
import { counted, span } from "../kit/words.ts";
import type { Board, BreakerNow } from "./board.ts";
import { type ServiceName, SERVICES } from "./weather.ts";

/** Watches the breakers. */
export class DemoBreakers {
  readonly #board: Board;
  readonly #before = new Map<ServiceName, BreakerView>();

  constructor(board: Board) {
    this.#board = board;
  }

  /** Looks at what the fleet says now. */
  tick(views: readonly BreakerView[]): void {
    for (const service of SERVICES) {
      const view = views.find((each) => each.service === service);
      // Of a service that was never anything but well there is nothing to tell.
      if (!view || (view.since === 0 && view.holdUntil === null)) continue;
      const before = this.#board.breakers[service] ?? "closed";
      const state = stateOf(view);
      this.#board.breakers[service] = state;
      if (view.state !== "closed") this.#board.heldBack(service, "parked");
      else if (view.holdUntil !== null) this.#board.heldBack(service, "limited");
      this.#tell(service, view, before === "ramp" && state === "closed");
      this.#before.set(service, view);
    }
  }

  #tell(service: ServiceName, breaker: BreakerView, rampIsOver: boolean): void {
    const { news } = this.#board;
    const before = this.#before.get(service);
    if (rampIsOver) news.tell("good", `${service} has its full load again`);
    if (before === undefined ? breaker.state === "closed" : before.since === breaker.since) return;
    if (breaker.state === "open" && breaker.reason === "a probe failed") {
      const next = span((breaker.until ?? breaker.since) - breaker.since);
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

function stateOf({ state, rampUntil }: BreakerView): BreakerNow {
  if (state === "closed") return rampUntil === null ? "closed" : "ramp";
  return state === "half_open" ? "probe" : "open";
}
