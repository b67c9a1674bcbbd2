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

/** The answer of a store that was told the known version: null where nothing has changed. */
export interface ControlNews extends Pick<Control, "version" | "now"> {
  readonly held: Pick<Control, "pauses" | "services"> | null;
}

/** How long a read counts as known: a restored database may count the same versions again. */
const KNOWN_MS = 5_000;

/**
 * Caches the control. Workers read it many times a second, there may be thousands of pauses and services, and nearly
 * always nothing has changed: then only a version is read.
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
