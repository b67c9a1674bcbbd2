// One look at the alerts of a fleet: the facts, the book after them, and what the sinks of this process have to tell. The
// processes of a fleet share the book: the one whose write comes first has looked for all.
import { alertKey, bookAfter, muteOf } from "../core/alerting/book.ts";
import { messageOf } from "../core/alerting/message.ts";
import { conditionsIn, type Rules } from "../core/alerting/rules.ts";
import {
  mayTell,
  newSink,
  type SinkRecord,
  untoldOf,
  withFailure,
  withIntent,
  withMark,
  withoutIntent,
} from "../core/alerting/telling.ts";
import type { HealthLimits } from "../core/health.ts";
import type { Store } from "../store/store.ts";
import type { Log } from "../system/log.ts";
import type { System } from "../system/system.ts";
import { type AlertNotes, bookChange, readNotes, sinkChange } from "../operate/alert-cells.ts";
import { gatherAlertFacts } from "./facts.ts";
import { type AlertSink, TELL_WITHIN_MS } from "./sinks.ts";

/** What a look needs. */
export interface LookParts {
  readonly store: Store;
  readonly system: Pick<System, "monotonic">;
  readonly log: Log;
  readonly rules: Rules;
  readonly health: HealthLimits;
  readonly sinks: readonly AlertSink[];
  /** The process that looks: the id of its worker. */
  readonly process: () => string;
  /** How often a fleet looks. */
  readonly everyMs: number;
  /** How long a process that tells keeps others from telling the same; a killed one is followed after that. */
  readonly claimMs?: number;
}

/** How often a fleet looks by default. */
export const LOOK_EVERY_MS = 30_000;
const CLAIM_MS = 2 * TELL_WITHIN_MS + 5_000;
/** Most messages of one sink that one step tells. */
const MESSAGES = 20;

/** Looks, unless a process has looked just now; then the notes as they are. `isDue` is true for a look in any case. */
export async function look(parts: LookParts, isDue = false): Promise<AlertNotes> {
  const { store, rules, health, everyMs } = parts;
  const notes = await readNotes(store);
  const { book, mutes, now } = notes;
  if (!isDue && now - book.value.lookedAt < everyMs * 0.8) return notes;
  const facts = await gatherAlertFacts(store, notes, health);
  const conditions = conditionsIn(facts, rules);
  const after = bookAfter(book.value, { conditions, rules, mutes: mutes.value, now: facts.health.now });
  const [isOurs] = await store.setCells([bookChange(after, book.version)]);
  // Another process has looked meanwhile: its book is as good.
  return isOurs ? { ...notes, book: { value: after, version: book.version + 1, at: now } } : readNotes(store);
}

/** Tells what each sink has not told; the sinks do not wait for one another. */
export async function tellAll(parts: LookParts, notes: AlertNotes, signal: AbortSignal): Promise<void> {
  await Promise.all(parts.sinks.map((sink) => tellSink(parts, sink, notes, signal)));
}

async function tellSink(parts: LookParts, sink: AlertSink, notes: AlertNotes, signal: AbortSignal): Promise<void> {
  const { store, system, rules, process, claimMs = CLAIM_MS } = parts;
  const from = system.monotonic();
  const now = (): number => notes.now + Math.round(system.monotonic() - from);
  const book = notes.book.value;
  const known = notes.sinks.get(sink.id);
  // One that is new to a book without alerts has nothing to remember.
  if (!known && book.alerts.length === 0) return;
  let record: SinkRecord = known?.value ?? newSink(sink.name, book);
  let version = known?.version ?? 0;
  const write = async (next: SinkRecord): Promise<boolean> => {
    const [isOurs = false] = await store.setCells([sinkChange(sink.id, next, version)]);
    if (isOurs) [record, version] = [next, version + 1];
    return isOurs;
  };
  for (let count = 0; count < MESSAGES && !signal.aborted; count += 1) {
    const alert = untoldOf(record, book, rules, sink.least).find(
      (each) => muteOf(each, notes.mutes.value, now()) === null,
    );
    if (!alert || !mayTell(record, process(), now())) break;
    if (!(await write(withIntent(record, process(), now() + claimMs)))) return;
    const message = messageOf(alert, rules.get(alert.rule)?.severity ?? "warning");
    const error = await sink.tell(message);
    if (error === null) {
      if (!(await write(withMark(record, alert, book, now())))) return;
      continue;
    }
    if (record.tries === 0) complain(parts, sink, `${alertKey(alert)}: ${message.text}`, error);
    await write(withFailure(record, error, now()));
    return;
  }
  if (record.by === process()) await write(withoutIntent(record));
  else if (!known) await write(record);
}

/** The alert stays in the log, whatever the sink. */
function complain({ log }: LookParts, { name }: AlertSink, alert: string, error: string): void {
  log.warn({ sink: name, error, alert }, `an alert could not be told to ${name}; it will be tried again`);
}
