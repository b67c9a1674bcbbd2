// Lists the breakers of a fleet, and opens, closes and resets them by hand.
import { type Duration, parseDuration } from "../core/duration.ts";
import { callsOf, failuresInARow, witnessFrom } from "../core/evidence.ts";
import { subjectOf } from "../core/event-log.ts";
import { checkName, checkText, JOB_BOUNDS } from "../core/new-job.ts";
import { parseOptions } from "../core/options.ts";
import type { Limits } from "../core/service.ts";
import {
  closed,
  type Breaker,
  initialRecord,
  openedByHand,
  recordFrom,
  resetAt,
  type ServiceRecord,
} from "../core/service-record.ts";
import type { Cell, CellQuery, Control, Store } from "../store/store.ts";
import type { ActionOptions, EventLog } from "../report/event-log.ts";
import { livingAmong, type SaidSettings, settingsFrom, settingsOfServices } from "../services/holding.ts";
import { changeService } from "../services/service-change.ts";

/** The breaker of a service as shown to people. Times are epoch milliseconds by the store's clock. */
export interface BreakerView {
  /** The name of the service. */
  readonly service: string;
  /** `isolated` is open by hand. */
  readonly state: Breaker["state"];
  /** When it entered the state; 0 if it has always been closed. */
  readonly since: number;
  /** When it is probed; null where it is not open, or stays open until closed by hand. */
  readonly until: number | null;
  /** Why it is open; null if it is not. */
  readonly reason: string | null;
  /** Until when the service asked for no calls (`Retry-After`); null if it did not. */
  readonly holdUntil: number | null;
  /** Until when its load rises slowly after an outage; null if it does not. */
  readonly rampUntil: number | null;
  /** Calls in the window, by all workers. */
  readonly calls: number;
  /** Those of them that failed. */
  readonly failures: number;
  /** Failures in a row, by all workers. */
  readonly consecutive: number;
  /** Probes that run now. */
  readonly probes: number;
  /** Workers that take no jobs of the service, because the calls fail only there. */
  readonly sick: readonly { readonly worker: string; readonly until: number }[];
}

/** Lists breakers and changes them by hand, for the whole fleet. */
export interface Breakers {
  /** The breaker of every service that is configured or was called, by name. */
  list(): Promise<BreakerView[]>;
  /** The breaker of a service; closed if nothing is known of it. */
  get(service: string): Promise<BreakerView>;
  /** Opens it by hand for a time (1 ms to 10 years), or until it is closed by hand. */
  open(
    service: string,
    options: { readonly reason: string; readonly for?: Duration } & ActionOptions,
  ): Promise<BreakerView>;
  /** Closes it; the load rises along the service's ramp. */
  close(service: string, options?: ActionOptions): Promise<BreakerView>;
  /** Closes it at once and without a ramp, and forgets what the fleet has counted and any `Retry-After`. */
  reset(service: string, options?: ActionOptions): Promise<BreakerView>;
}

/** The breakers of a store. */
export function openBreakers({
  store,
  limits,
  eventLog,
}: {
  readonly store: Store;
  readonly limits: Limits;
  readonly eventLog: EventLog;
}): Breakers {
  const read = async (queries: readonly CellQuery[]) => {
    const [control, { cells }, workers] = await Promise.all([store.control(), store.cells(queries), store.workers()]);
    return { control, cells, settings: settingsFrom(cells, limits, livingAmong(workers, control.now)) };
  };
  const get = async (service: string): Promise<BreakerView> => {
    checkName("service", service);
    const { control, cells, settings } = await read(queriesFor(service));
    return viewOf(service, control, cells, settings);
  };
  const change = async (service: string, action: ByHand, next: NextRecord): Promise<BreakerView> => {
    await changeByHand({ store, eventLog }, service, action, next);
    return get(service);
  };
  return {
    async list() {
      const { control, cells, settings } = await read([{ kind: "evidence" }, { kind: "settings" }]);
      const names = new Set([
        ...control.services.map(({ name }) => name),
        ...cells.flatMap(({ kind, name }) => (kind === "evidence" ? [name] : [])),
        ...[...settings.said.keys()].flatMap((name) => (name.startsWith("service:") ? [name.slice(8)] : [])),
      ]);
      names.delete("*");
      return [...names].toSorted().map((name) => viewOf(name, control, cells, settings));
    },
    get,
    async open(service, options) {
      const { reason, for: span, why = reason } = parseOptions(options, ["reason", "for", "why"], "open");
      checkText("reason", reason);
      const forMs = span === undefined ? null : parseDuration(span, "for", { minMs: 1, maxMs: JOB_BOUNDS.delayMs });
      return change(service, { kind: "breaker.open", why, details: { reason, forMs } }, (record, now) =>
        openedByHand(record, reason as string, forMs === null ? null : now + forMs, now),
      );
    },
    async close(service, options = {}) {
      const { why } = parseOptions(options, ["why"], "close");
      checkName("service", service);
      const { settings } = await read(queriesFor(service));
      const { rampMs } = settings.service(service);
      return change(service, { kind: "breaker.close", why }, (record, now) => closed(record, rampMs, now));
    },
    async reset(service, options = {}) {
      const { why } = parseOptions(options, ["why"], "reset");
      return change(service, { kind: "breaker.reset", why }, resetAt);
    },
  };
}

type NextRecord = Parameters<typeof changeService>[2];

/** A change by hand, for the event log. */
interface ByHand {
  readonly kind: string;
  readonly why: unknown;
  readonly details?: object;
}

/** Changes the record of a service; the outcome in the event log has the states before and after. */
async function changeByHand(
  { store, eventLog }: { readonly store: Store; readonly eventLog: EventLog },
  service: string,
  action: ByHand,
  next: NextRecord,
): Promise<void> {
  checkName("service", service);
  const states: { before?: Breaker["state"]; after?: Breaker["state"] } = {};
  await eventLog.act({ ...action, subject: subjectOf("service", service), outcome: () => states }, () =>
    changeService(store, service, (record, now) => {
      const after = next(record, now);
      states.before = record.breaker.state;
      states.after = after.breaker.state;
      return after;
    }),
  );
}

function queriesFor(service: string): CellQuery[] {
  return [{ kind: "evidence", name: service }, ...settingsOfServices([service])];
}

const WINDOW_MS = 60_000;

function viewOf(service: string, control: Control, cells: readonly Cell[], settings: SaidSettings): BreakerView {
  const { now } = control;
  const found = control.services.find(({ name }) => name === service);
  const record: ServiceRecord = found ? recordFrom(found.value) : initialRecord;
  const { breaker, holdUntil } = record;
  const own = cells.filter(({ kind, name }) => kind === "evidence" && name === service);
  const all = own.flatMap(({ holder, value }) => witnessFrom(holder, value));
  // After a closing, only evidence since then counts.
  const witnesses = breaker.state === "closed" ? all.filter(({ evidence }) => evidence.since === breaker.since) : all;
  const windowMs = settings.service(service).breaker?.windowMs ?? WINDOW_MS;
  const calls = witnesses.map(({ evidence }) => callsOf(evidence, { windowMs }, now));
  return {
    service,
    state: breaker.state,
    since: breaker.since,
    until: "until" in breaker ? breaker.until : null,
    reason: "reason" in breaker ? breaker.reason : null,
    holdUntil: holdUntil > now ? holdUntil : null,
    rampUntil: breaker.state === "closed" && breaker.rampUntil > now ? breaker.rampUntil : null,
    calls: calls.reduce((sum, each) => sum + each.all, 0),
    failures: calls.reduce((sum, each) => sum + each.failures, 0),
    consecutive: failuresInARow(witnesses).reduce((sum, failures) => sum + failures, 0),
    probes: breaker.state === "half_open" ? breaker.probes.filter(({ until }) => until > now).length : 0,
    sick: witnesses.flatMap(({ worker, evidence: { sickUntil } }) =>
      sickUntil > now ? [{ worker, until: sickUntil }] : [],
    ),
  };
}
