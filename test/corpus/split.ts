// The corpus in two halves, by a hash of the cause's name: people who write rules for fingerprints read the errors of
// the first, and only the figures of the second.

import { createHash } from "node:crypto";

/** True for a cause of the half that rules may be made from. */
export function isRead(cause: string): boolean {
  return (createHash("sha256").update(cause).digest()[0] ?? 0) % 2 === 0;
}
