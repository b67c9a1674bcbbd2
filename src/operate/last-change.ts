// Says who has changed a job last, for an operator whose own change comes too late.
import { outcomesIn, stepOf, subjectOf } from "../core/event-log.ts";
import type { Store } from "../store/store.ts";
import { isoTime } from "./json-form.ts";

/** A retry of many jobs may take this long; its intent is looked for no earlier. */
const INTENT_MS = 600_000;

interface Change {
  readonly at: number;
  readonly text: string;
}

/** Who has changed a job last, and when: ` (bob edited it at …)`; empty where versions, letters and events do not tell. */
export async function lastChange(store: Store, id: string): Promise<string> {
  const found = await Promise.all([lastPayload(store, id), lastSend(store, id), lastCall(store, id)]);
  const known = found.filter((change) => change !== null);
  const last = known.reduce<Change | null>((a, b) => (a === null || b.at >= a.at ? b : a), null);
  return last === null ? "" : ` (${last.text} at ${isoTime(last.at)})`;
}

async function lastPayload(store: Store, id: string): Promise<Change | null> {
  const last = (await store.payloads(id)).at(-1);
  if (!last) return null;
  const { at, actor, redrive } = last;
  const who = actor ?? (redrive === null ? "its producer" : `redrive run ${redrive}`);
  return { at, text: `${who} gave it another payload` };
}

async function lastSend(store: Store, id: string): Promise<Change | null> {
  const { items } = await store.deadLetters({ jobId: id, redriven: true, limit: 2, payloads: false });
  const letter = items.find(({ redrivenAt }) => redrivenAt !== null);
  const at = letter?.redrivenAt ?? null;
  if (!letter || at === null) return null;
  const who = letter.redrive === null ? await senderAt(store, id, at) : `redrive run ${letter.redrive}`;
  return { at, text: `${who ?? "another operator"} sent it back to work` };
}

/** The operator whose retry was under way when the job was sent; null where that may have been several. */
async function senderAt(store: Store, id: string, sentAt: number): Promise<string | null> {
  const query = {
    kind: "dead_letters.retry",
    from: sentAt - INTENT_MS,
    until: sentAt + INTENT_MS,
    limit: 200,
  } as const;
  const { items } = await store.events(query);
  const outcomes = outcomesIn(items);
  const underWay = items.filter(
    (event) => stepOf(event) === "intent" && event.at <= sentAt && (outcomes.get(event.seq)?.at ?? sentAt) >= sentAt,
  );
  const own = underWay.filter(({ subject }) => subject === subjectOf("job", id));
  const actors = new Set((own.length > 0 ? own : underWay).map(({ actor }) => actor));
  return actors.size === 1 ? ([...actors][0] ?? null) : null;
}

/** The last cancel, or removal, of this job alone. */
async function lastCall(store: Store, id: string): Promise<Change | null> {
  const subject = subjectOf("job", id);
  const pages = await Promise.all(
    [
      ["jobs.cancel", "cancelled it"],
      ["dead_letters.remove", "removed it"],
    ].map(async ([kind = "", what]) => {
      const [event] = (await store.events({ subject, kind, limit: 1 })).items;
      return event?.actor ? { at: event.at, text: `${event.actor} ${what}` } : null;
    }),
  );
  return pages.find((change) => change !== null) ?? null;
}
