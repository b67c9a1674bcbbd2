// Tells when the weather turns, once each.
import type { Board } from "./board.ts";
import { type Spell, SPELLS } from "./weather.ts";

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
      if (at >= until) this.#once(`${kind} ends`, () => this.#ends(kind));
    }
  }

  #begins(kind: Spell["kind"]): void {
    const { news } = this.#board;
    if (kind === "down") news.tell("bad", "all services go down: 503 or a broken connection for every call");
    else news.tell("wait", "payments and mail have had enough: 429 for every call");
  }

  #ends(kind: Spell["kind"]): void {
    const { news, retrying } = this.#board;
    // What belongs to the spell is told before its end.
    news.tick((key) => (kind === "limited" ? /^limited/ : /^(down|network|exhausted)/).test(key));
    if (kind === "limited") news.tell("good", "payments and mail take calls again");
    else news.tell("good", `all services are back: ${retrying} jobs return spread out, not all at once`);
  }

  #once(what: string, tell: () => void): void {
    if (this.#told.has(what)) return;
    this.#told.add(what);
    tell();
  }
}
