// Classes with decorated methods, for retryable-decorator.test.ts. Compiled by tsc, because vitest's own transform leaves
// standard decorators as they are and Node does not know them.
import type { Retryable } from "../../src/retryable/retryable.ts";

/** A class with every kind of method, whose calls fail as often as it is told. */
export function pricesOn(retryable: Retryable) {
  class Prices {
    static failures = 0;
    readonly currency: string;
    failures: number;
    calls = 0;

    constructor(currency: string, failures = 0) {
      this.currency = currency;
      this.failures = failures;
    }

    @retryable({ maxAttempts: 3 })
    async of(item: string, amount = 1): Promise<string> {
      this.#mayFail();
      return `${amount} ${item} in ${this.currency}`;
    }

    @retryable()
    static async all(): Promise<string> {
      if (Prices.failures-- > 0) throw new Error("not yet");
      return "all";
    }

    @retryable()
    async #secret(): Promise<string> {
      this.#mayFail();
      return "secret";
    }

    secret(): Promise<string> {
      return this.#secret();
    }

    @retryable({ maxAttempts: 1, breaker: { failures: 2 } })
    async guarded(): Promise<string> {
      this.#mayFail();
      return "guarded";
    }

    @retryable({ signal: (_item: string, options?: { signal: AbortSignal }) => options?.signal })
    async cancellable(item: string, _options?: { signal: AbortSignal }, _more?: number): Promise<string> {
      this.#mayFail();
      return item;
    }

    #mayFail(): void {
      this.calls++;
      if (this.failures-- > 0) throw new Error("not yet");
    }
  }
  return Prices;
}

/** Classes that must not compile; nothing here is ever called. */
export function wrong(retryable: Retryable): unknown {
  class Wrong {
    // @ts-expect-error The method would return a promise where its type says it does not.
    @retryable()
    plain(): string {
      return "";
    }

    // @ts-expect-error The signal is chosen from a number, the method has a text.
    @retryable({ signal: (_n: number) => undefined })
    async other(_text: string): Promise<void> {}
  }
  return Wrong;
}
