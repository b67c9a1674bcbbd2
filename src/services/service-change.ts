// Changes the record of a service once, by hand, without watching it.
import { RedriveError } from "../core/errors.ts";
import { initialRecord, recordFrom, type ServiceRecord } from "../core/service-record.ts";
import type { Store } from "../store/store.ts";

/** Most attempts against concurrent changes. */
const TRIES = 10;

/** Writes the record that `next` returns, by compare-and-set; writes nothing where it is the same. */
export async function changeService(
  store: Pick<Store, "control" | "setService">,
  service: string,
  next: (record: ServiceRecord, now: number) => ServiceRecord,
): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    const { services, now } = await store.control();
    const found = services.find(({ name }) => name === service);
    const record = found ? recordFrom(found.value) : initialRecord;
    const after = next(record, now);
    if (after === record) return;
    if (await store.setService(service, found?.version ?? 0, JSON.stringify(after))) return;
  }
  throw new RedriveError(
    "conflict",
    `The breaker of ${service} was changed by other processes during every attempt. Try again.`,
  );
}
