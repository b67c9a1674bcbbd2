// Types of guardian.mjs for tests.

/** Watches over one process at a time. */
export interface Guardian {
  /** From now on it is this one; a group is a negative number. */
  watch(pid: number): void;
  /** There is nothing to end at the moment. */
  forget(): void;
  /** All is ended and deleted; the guardian goes. */
  dismiss(): void;
}

/** Starts one; `folder` is deleted after the process has ended. */
export function startGuardian(options: { readonly signal: "QUIT" | "KILL"; readonly folder?: string }): Guardian;
