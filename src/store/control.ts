// What holds work back, as a store keeps it: pauses, and the states of services.

/** Something that can be paused. */
export interface PauseTarget {
  readonly kind: "queue" | "type" | "service" | "tenant";
  readonly name: string;
}

/** A pause, in force from `from` until before `until`; ended ones are kept, because deadlines do not count them. */
export interface Pause extends PauseTarget {
  readonly from: number;
  readonly until: number | null;
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
