// The alerts of a worker: it looks about every 30 s, one process of the fleet at a time, and its sinks tell what the book
// has for them. Where the store does not answer there is no book: then each process tells that by its own sinks.
//
//   store answers ── it does not ──► away ── for `for` ──► told ── every `repeat` ──► told again
//        ▲                            │                     │
//        └──────── it answers ────────┘◄──── tell: over ────┘
import { type AlertRecord, type MessageKind } from "../core/alerting/book.ts";
import { messageOf } from "../core/alerting/message.ts";
import { isRedriveError } from "../core/errors.ts";
import { textOf } from "../core/failure.ts";
import { safeLine } from "../core/safe-text.ts";
import type { System } from "../system/system.ts";
import type { Service } from "../upkeep/upkeep.ts";
import { objectiveChange, readNotes, staleChange } from "../operate/alert-cells.ts";
import { look, type LookParts, tellAll } from "./look.ts";

/** What the service needs. */
export interface AlertServiceParts extends LookParts {
  readonly system: System;
  readonly jobs: readonly { readonly type: string; readonly objectiveMs: number | null }[];
  /** How many verdicts of this worker the store has refused. */
  readonly staleWrites: () => number;
  /** True for an error that says that the store is away. */
  readonly isAway: (what: string, error: unknown) => boolean;
}

/** The alerts of one worker. */
export interface WorkerAlerts {
  readonly service: Service;
  /** Looks once and tells, at most so long: for a drain, which ends before the service would look. */
  briefly(withinMs: number): Promise<void>;
}

/** How often a store that is away is asked. */
const AWAY_EVERY_MS = 10_000;

/** Opens them. */
export function openWorkerAlerts(parts: AlertServiceParts): WorkerAlerts {
  const { system, everyMs } = parts;
  const note = notesOf(parts);
  const outage = outageOf(parts);
  // One step at a time: two of one process would tell the same.
  let last: Promise<unknown> = Promise.resolve();
  const step = (signal: AbortSignal, isDue: boolean): Promise<void> => {
    const work = async (): Promise<void> => {
      await note();
      await tellAll(parts, await look(parts, isDue), signal);
    };
    const turn = last.then(work, work);
    last = turn;
    return turn;
  };
  return {
    service: {
      name: "alerts",
      firstMs: Math.min(everyMs, 5_000) * system.random(),
      async step(signal) {
        try {
          await step(signal, false);
          await outage.over();
        } catch (error) {
          if (!isRedriveError(error) || !parts.isAway("alerts", error)) throw error;
          await outage.lasts(error);
          return Math.min(everyMs, AWAY_EVERY_MS);
        }
        return everyMs * (0.9 + 0.2 * system.random());
      },
    },
    async briefly(withinMs) {
      const done = new AbortController();
      const late = system.sleep(withinMs, done.signal);
      const told = step(done.signal, true);
      try {
        await Promise.race([told, late]);
      } finally {
        done.abort();
        // What it still tells is told by the next process, once its claim has ended.
        told.catch(() => undefined);
      }
    },
  };
}

/** Notes what only this worker knows: the objectives of its types, and how many of its verdicts were refused. */
function notesOf({ store, jobs, process, staleWrites }: AlertServiceParts): () => Promise<void> {
  let isNoted = false;
  let refused = 0;
  return async () => {
    const count = staleWrites() - refused;
    const changes = count > 0 ? [staleChange(process(), count)] : [];
    if (!isNoted && jobs.length > 0) {
      const { objectives } = await readNotes(store);
      for (const { type, objectiveMs } of jobs)
        if ((objectives.get(type)?.value ?? null) !== objectiveMs) changes.push(objectiveChange(type, objectiveMs));
    }
    if (changes.length > 0) await store.setCells(changes);
    refused += count;
    isNoted = true;
  };
}

/** Tells by the sinks of this process that its store is away; nothing of it is kept. */
function outageOf({ system, sinks, rules, log }: AlertServiceParts) {
  let since: number | null = null;
  let raised: AlertRecord | null = null;
  const tell = async (kind: MessageKind, text: string): Promise<void> => {
    const settings = rules.get("storeAway");
    if (!settings) return;
    const now = system.now();
    const at = now - Math.round(system.monotonic() - (since ?? system.monotonic()));
    const about = { rule: "storeAway", subject: null, text, help: "redrive doctor", value: null, limit: null } as const;
    const message = { n: Math.round(now / 1_000), kind, at: now };
    const times = {
      since: at,
      seenAt: now,
      raisedAt: raised?.raisedAt ?? now,
      clearedAt: kind === "cleared" ? now : null,
    };
    const record: AlertRecord = { ...about, ...times, state: kind === "cleared" ? "cleared" : "raised", message };
    raised = kind === "cleared" ? null : record;
    // The event log is in the store, which is away.
    const own = sinks.filter(({ id }) => id !== "events");
    await Promise.all(
      own.map(async (sink) => {
        const error = await sink.tell(messageOf(record, settings.severity));
        if (error !== null)
          log.warn({ sink: sink.name, error, alert: text }, `an alert could not be told to ${sink.name}`);
      }),
    );
  };
  return {
    async lasts(error: unknown): Promise<void> {
      since ??= system.monotonic();
      const settings = rules.get("storeAway");
      if (!settings || system.monotonic() - since < settings.forMs) return;
      const text = `the store does not answer: ${safeLine(textOf(error))}`;
      if (raised === null) return tell("raised", text);
      const { repeatMs } = settings;
      if (repeatMs !== null && system.now() - (raised.message?.at ?? 0) >= repeatMs) await tell("repeated", text);
    },
    async over(): Promise<void> {
      if (raised !== null) await tell("cleared", "the store does not answer; it does again");
      since = null;
    },
  };
}
