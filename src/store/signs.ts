// What a look at the lanes tells beside them: whoever waits for a change hears here that there is none, and need not ask.

/** Signs of change. */
export interface Signs {
  /** The version of `control`. */
  readonly control: number;
  /** How many workers are known. */
  readonly workers: number;
  /** Another number with every worker that comes or goes. */
  readonly newest: number;
  /** When the first of their leases ends; 0 while one is known that was given up, null where there are none. */
  readonly lapseAt: number | null;
  /** Another number with every change of a cell without name and holder: these tell of changes to others of their kind. */
  readonly cells: number;
  /** Whoever makes work due wakes this process. */
  readonly isHeard: boolean;
}
