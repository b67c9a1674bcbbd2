// The figures that monitors ask for again and again: due work by lane, live dead letters by type, causes. Each comes from
// an index or a table of counts, so that the answer costs the same behind a million jobs. The SQL is in cause-queries.ts.

/** How far to look. */
export interface FigureQuery {
  /** Most lanes that are read, in the order of their numbers. */
  readonly lanes: number;
  /** Most due jobs that are counted, over all lanes; each lane gets an equal share, at least 100, or `jobs` where that is less. */
  readonly jobs: number;
  /** Most live letters among which the oldest is sought, those of the jobs first that were enqueued first. */
  readonly letters: number;
  /** The kind of cells with notes about causes, by fingerprint: the live causes that have one are named. */
  readonly notes: string;
}

/** The due work of one lane. */
export interface DueCount {
  readonly type: string;
  readonly queue: string;
  readonly service: string | null;
  readonly tenant: string | null;
  /** When its first job fell due. */
  readonly headRunAt: number;
  /** Its due jobs, counted no further than its share. */
  readonly jobs: number;
}

/** The answer. */
export interface StoreFigures {
  /** Each lane with due work, those that wait for a place in their group included. */
  readonly due: readonly DueCount[];
  /** Live dead letters by type, exactly. */
  readonly letters: readonly { readonly type: string; readonly count: number }[];
  /** When the oldest live letter died, of those that were looked at; null where there is none. */
  readonly oldestLetterAt: number | null;
  /** Causes with a live letter. */
  readonly causes: number;
  /** The fingerprints of those with a note. */
  readonly noted: readonly string[];
  /** Store time. */
  readonly now: number;
}
