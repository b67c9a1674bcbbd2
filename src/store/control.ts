// What holds work back, as a store keeps it: pauses, and the states of services.

/** Something that can be paused. */
export interface PauseTarget {
  /** What is paused. */
  readonly kind: "queue" | "type" | "service" | "tenant";
  /** Its name. */
  readonly name: string;
}

/** A pause, in force from `from` until before `until`; ended ones are kept, because deadlines do not count them. */
export interface Pause extends PauseTarget {
  /** When it began. */
  readonly from: number;
  /** When it ends; null for one that ends by `resume`. */
  readonly until: number | null;
  /** Why; empty if no reason was given. */
  readonly reason: string;
}

/** The stored state of a service: opaque text with a version. */
export interface ServiceState {
  readonly name: string;
  readonly version: number;
  readonly value: string;
}

/** Everything that holds work back. */
export interface Control {
  /** Grows with every change of pauses and services. */
  readonly version: number;
  readonly now: number;
  readonly pauses: readonly Pause[];
  readonly services: readonly ServiceState[];
}

/** What a store answers that was told what is known: null where that is still all. */
export interface ControlNews extends Pick<Control, "version" | "now"> {
  readonly held: Pick<Control, "pauses" | "services"> | null;
}

/** How long what was read counts as known: a database that was set back may count the same versions once more. */
const KNOWN_MS = 5_000;

/**
 * Remembers what holds work back. Workers ask many times a second, there may be thousands of pauses and services, and
 * nearly always nothing has changed: then a version is all that is read.
 */
export function rememberControl(ask: (known: number, until: number) => Promise<ControlNews>): () => Promise<Control> {
  let last: (Control & { readonly readAt: number }) | null = null;
  return async () => {
    const known = last;
    const { version, now, held } = await ask(known?.version ?? 0, known ? known.readAt + KNOWN_MS : 0);
    if (held === null && known) return { version, now, pauses: known.pauses, services: known.services };
    const control = { version, now, pauses: held?.pauses ?? [], services: held?.services ?? [] };
    last = { ...control, readAt: now };
    return control;
  };
}
