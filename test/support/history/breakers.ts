// What the history says about breakers (R10), and about those that never close (R20). Changes are numbered, so what may hold at a claim is known even where answers
// are missing: the last change that was confirmed before the claim was sent, and all later ones that were sent.
import type { FinalDump, HistoryEvent } from "./event.ts";
import type { Ledger, Run, Track } from "./ledger.ts";

const KEPT_CHANGES = 50;

interface Change {
  readonly version: number;
  readonly state: string | null;
  readonly probes: number;
  /** Where in the history it was sent, and where it was confirmed. */
  readonly since: number;
  at: number;
}

interface BreakerTrack {
  changes: Change[];
  /** The time from which on it is known to be closed. */
  closedTime: number;
  held: Set<Run>;
}

/** The breakers of all services. */
export class Breakers {
  readonly #ledger: Ledger;
  readonly #all = new Map<string, BreakerTrack>();
  readonly #serviceOf = new Map<string, string>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  onEnqueued({ id }: Track, service: string): void {
    this.#serviceOf.set(id, service);
  }

  /** Long after the last fault no breaker is half-open before work that waits: a probe closes it, or opens it again. */
  finish({ jobs }: FinalDump): void {
    for (const { id, state } of jobs) {
      const service = this.#serviceOf.get(id);
      const breaker = state === "queued" && service !== undefined ? this.#all.get(service) : undefined;
      if (breaker === undefined) continue;
      const left = possibleAt(breaker, Number.POSITIVE_INFINITY);
      if (left.every((change) => change.state === "half-open"))
        this.#ledger.flag("R20", `waits for the breaker of ${service}, which stays half-open`, id);
    }
  }

  onChange(event: HistoryEvent): void {
    if (event.service === null) return;
    const breaker = this.#all.get(event.service) ?? fresh();
    this.#all.set(event.service, breaker);
    if (event.phase === "invoke") breaker.changes.push(changeOf(breaker, event));
    if (event.phase === "fail") breaker.changes = breaker.changes.filter(({ since }) => since !== event.since);
    if (event.phase !== "ok") return;
    const known = breaker.changes.find(({ since }) => since === event.since);
    const change = known ?? changeOf(breaker, event);
    Object.assign(change, { at: event.seq, state: event.answer, probes: event.count });
    if (!known) breaker.changes.push(change);
    if (event.answer !== "closed" || breaker.changes.some(({ state }) => state !== "closed")) {
      breaker.closedTime = event.storeTime;
    }
    // No claim is under way for as long as so many changes take.
    breaker.changes = breaker.changes.filter(({ version }) => version >= change.version - KEPT_CHANGES);
    breaker.held.clear();
  }

  check(track: Track, run: Run, event: HistoryEvent): void {
    const breaker = this.#all.get(event.service as string);
    if (breaker === undefined) return;
    const possible = possibleAt(breaker, event.since);
    if (possible.some(({ state }) => state === "closed" || state === null)) return;
    const most = Math.max(...possible.map(({ state, probes }) => (state === "half-open" ? probes : 0)));
    if (most === 0) {
      this.#ledger.flag("R10", `claim ${event.epoch} while the breaker of ${event.service} was open`, track.id);
      return;
    }
    for (const held of breaker.held) if (held.end !== 0 || held.tries > 0) breaker.held.delete(held);
    breaker.held.add(run);
    // What is fetched beside a probe goes back without a call, which shows where the test sees every handler.
    if (event.worker !== null && this.#ledger.worker(event.worker).watched) run.probes = most;
    else this.#checkProbes(track, event.service as string, breaker.held.size, most);
  }

  /** The handler of a run was called: now it counts as a probe. */
  onStarted(track: Track, run: Run | undefined, since: number): void {
    const breaker = run?.service ? this.#all.get(run.service) : undefined;
    if (run === undefined || breaker === undefined || run.probes === 0) return;
    const others = [...breaker.held].filter(
      (held) => held !== run && held.called && held.end === 0 && held.tries === 0,
    );
    // Others may have been let through since it was claimed.
    const possible = possibleAt(breaker, since);
    if (possible.some(({ state }) => state === "closed" || state === null)) return;
    const now = possible.map(({ state, probes }) => (state === "half-open" ? probes : 0));
    this.#checkProbes(track, run.service as string, others.length + 1, Math.max(run.probes, ...now));
  }

  #checkProbes(track: Track, service: string, count: number, most: number): void {
    if (count <= most) return;
    const held = `${count} runs of ${service} at once`;
    this.#ledger.flag("R10", `${held} while its breaker let ${most} through`, track.id);
  }

  /** The time from which on the breaker let everything through; null where nobody can say. */
  closedSince(service: string, since: number): number | null {
    const breaker = this.#all.get(service);
    if (breaker === undefined) return 0;
    return possibleAt(breaker, since).every(({ state }) => state === "closed") ? breaker.closedTime : null;
  }
}

function fresh(): BreakerTrack {
  const closed = { version: -1, state: "closed", probes: 0, since: 0, at: 0 };
  return { changes: [closed], closedTime: 0, held: new Set() };
}

function changeOf({ changes }: BreakerTrack, event: HistoryEvent): Change {
  const next = Math.max(...changes.map(({ version }) => version)) + 1;
  const version = event.epoch === -1 ? next : event.epoch;
  const { answer: state, count: probes, since } = event;
  return { version, state, probes, since, at: Number.POSITIVE_INFINITY };
}

/** What may have held for a claim that was sent at this place: nothing that a confirmed change had ended by then. */
function possibleAt({ changes }: BreakerTrack, since: number): Change[] {
  const last = Math.max(...changes.filter(({ at }) => at < since).map(({ version }) => version));
  return changes.filter(({ version }) => version >= last);
}
