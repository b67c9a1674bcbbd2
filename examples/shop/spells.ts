// Tells when the weather turns, once each.
import { counted } from "../kit/words.ts";
import type { Board } from "./board.ts";
import { type Spell, SPELLS } from "./weather.ts";

/** A part of the day in which the last answers of a spell become known. */
const NEWS_TAKE = 0.015;

/** Watches the time of the day. */
export class Spells {
  readonly #board: Board;
  readonly #told = new Set<string>();

  constructor(board: Board) {
    this.#board = board;
  }

  /** Tells what has turned by this time of the day. */
  tick(at: number): void {
    for (const { kind, from, until } of SPELLS) {
      if (at >= from) this.#once(`${kind} begins`, () => this.#begins(kind));
      if (at >= until + NEWS_TAKE) this.#once(`${kind} ends`, () => this.#ends(kind));
    }
  }

  #begins(kind: Spell["kind"]): void {
    const { news } = this.#board;
    if (kind === "down") news.tell("bad", "payments goes down: 503 for every call");
    else news.tell("wait", "media and mail have had enough: 429 for every call");
  }

  #ends(kind: Spell["kind"]): void {
    const { news, parked } = this.#board;
    // What belongs to the spell is told before its end.
    news.tick((key) => (kind === "limited" ? /^limited/ : /^(down|probe)/).test(key));
    if (kind === "limited") news.tell("good", "media and mail take calls again");
    else if (parked === 0) news.tell("good", "payments is back");
    else news.tell("good", `payments is back: the next probe will find out, ${counted(parked, "job")} parked`);
  }

  #once(what: string, tell: () => void): void {
    if (this.#told.has(what)) return;
    this.#told.add(what);
    tell();
  }
}
