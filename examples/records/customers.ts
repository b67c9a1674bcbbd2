// The records, made up: customers with an email, and for each, by its number, how the API will treat it.

/** A record of the input. */
export interface Customer {
  readonly id: string;
  readonly email: string;
}

/** What the API does to a record: how it ends is known before the first call. */
export type Fate = "fine" | "flaky" | "busy" | "slow" | "unknown" | "cursed";

/** The number of a record, which its email has. */
export function numberOf(email: string): number {
  return Number(/^customer-(\d+)@/.exec(email)?.[1] ?? -1);
}

/** How the API treats the record of a number: about two of three are fine. */
export function fateOf(number: number): Fate {
  const roll = (number * 37) % 100;
  if (roll < 66) return "fine";
  if (roll < 82) return "flaky";
  if (roll < 88) return "busy";
  if (roll < 92) return "slow";
  return roll < 97 ? "unknown" : "cursed";
}

/** How often a flaky record is refused before it is answered: once, twice or three times. */
export function refusalsOf(number: number): number {
  return 1 + (number % 3);
}

/** What the API knows about the customer of a number, so that anybody can check an answer. */
export function companyOf(number: number): { readonly company: string; readonly employees: number } {
  return { company: `Company ${number % 97}`, employees: 5 + ((number * 31) % 900) };
}

/** The customers from one number to another, with ids that no other run has. */
export function customers(run: string, from: number, to: number): Customer[] {
  return Array.from({ length: to - from }, (_, at) => ({
    id: `${run}-${from + at}`,
    email: `customer-${from + at}@example.com`,
  }));
}
