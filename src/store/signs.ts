// Signs of change that come with a look at the lanes: a loop that waits for a change sees here that there is none, and
// need not read the store.

/** Signs of change. */
export interface Signs {
  /** The version of `control`. */
  readonly control: number;
  /** How many workers are known. */
  readonly workers: number;
  /** A number that changes with every worker that comes or goes. */
  readonly newest: number;
  /** When the first of their leases ends; 0 while one is given up, null where there are none. */
  readonly lapseAt: number | null;
  /**
   * A number that changes with every change of a cell without name and holder: such cells mark changes to others of
   * their kind.
   */
  readonly cells: number;
  /** Processes that make work due wake this process. */
  readonly isHeard: boolean;
}
