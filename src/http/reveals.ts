// Writes into the event log that a person has looked at payloads. Looking again at the same job within a minute adds no
// second row, so that a client that waits for a result does not fill the log.
import { eventValue, subjectOf } from "../core/event-log.ts";
import type { Redrive } from "../redrive-api.ts";
import type { System } from "../system/system.ts";
import type { Server } from "./call.ts";

const AGAIN_MS = 60_000;
const KEPT_MOST = 10_000;

/** Writes the reveals of a server. */
export function openReveals({ store }: Pick<Redrive, "store">, { monotonic }: System): Server["reveal"] {
  const seen = new Map<string, number>();
  return async ({ actor }, ids, requestId) => {
    const now = monotonic();
    const fresh = ids.filter((id) => now - (seen.get(`${actor}\0${id}`) ?? Number.NEGATIVE_INFINITY) >= AGAIN_MS);
    if (ids.length > 0 && fresh.length === 0) return;
    const [only] = fresh;
    const subject = fresh.length === 1 ? subjectOf("job", only) : null;
    const details = fresh.length === 1 ? {} : { ids: fresh, count: ids.length === 0 ? null : fresh.length };
    const value = eventValue({ ...details, request: requestId });
    await store.record([{ kind: "payload.viewed", actor, why: null, subject, value }]);
    for (const id of fresh) {
      seen.delete(`${actor}\0${id}`);
      seen.set(`${actor}\0${id}`, now);
    }
    while (seen.size > KEPT_MOST) seen.delete(seen.keys().next().value as string);
  };
}
