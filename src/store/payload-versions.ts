// The payloads that a job had: each change adds a version, and number 0 is the payload that was enqueued.

/** Another payload for a job, and what is known of the change. */
export interface NewPayload {
  /** JSON text. */
  readonly payload: string;
  /** When it was written. */
  readonly at: number;
  /** The operator who wrote it; null where a redrive run did. */
  readonly actor: string | null;
  /** The id of the redrive run that wrote it; null for none. */
  readonly redrive: string | null;
  /** The reason that was given. */
  readonly why: string | null;
}
