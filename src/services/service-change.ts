// Changes the record of a service without watching it: for whoever does so once, by hand.
import { RedriveError } from "../core/errors.ts";
import { initialRecord, recordFrom, type ServiceRecord } from "../core/service-record.ts";
import type { Store } from "../store/store.ts";

/** Tries against others who change the record at the same time. */
const TRIES = 10;

/** Writes what `next` makes of the record, by compare-and-set; as it is where that is the same. */
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
  throw new RedriveError("conflict", `The breaker of ${service} is being changed by others all the time. Try again.`);
}
