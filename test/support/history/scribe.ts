// Writes the history of calls into a store: one line per job concerned when a call is sent, and one when its answer
// comes, does not come, or says no. Reads that no rule looks at leave no line.
import type { NewJob } from "../../../src/core/new-job.ts";
import type { JobKeep, Lease } from "../../../src/core/job.ts";
import { recordFrom } from "../../../src/core/service-record.ts";
import { RUN_CELLS, runFrom } from "../../../src/core/recovery/run.ts";
import type { CellChange, Retention, Store } from "../../../src/store/store.ts";
import type { Verb } from "../../../src/store/verb-facts.ts";
import { type HistoryEvent, hashText, type Kept, type Line, makeEvent, type Op, type Phase } from "./event.ts";

/** A call that was sent and not answered yet. */
export interface OpenCall {
  answered(answer: unknown, storeTime: number, latest?: number): void;
  failed(code: string): void;
  lost(): void;
}

type Args<V extends Verb> = Parameters<Store[V]>;
type Answer<V extends Verb> = Awaited<ReturnType<Store[V]>>;

/** How one verb is written down; an answered line may name the sent line it belongs to, else it is the one beside it. */
interface Style<V extends Verb> {
  readonly op: Op;
  sent(args: Args<V>, scribe: Scribe): Line[];
  answered(
    args: Args<V>,
    answer: Answer<V>,
    sent: readonly Line[],
    scribe: Scribe,
  ): (Line & { phase?: Phase; of?: number })[];
}

/** Keeps a history. */
export class Scribe {
  readonly events: HistoryEvent[] = [];
  /** Which generation a run belongs to, as its claim or its listing said. */
  readonly #generations = new Map<string, number>();

  write(actor: string, op: Op, phase: Phase, line: Line, since = -1): number {
    const seq = this.events.length + 1;
    this.events.push(makeEvent(seq, since === -1 ? seq : since, actor, op, phase, line));
    return seq;
  }

  /** Writes down that a call was sent; null if no rule looks at it. */
  sent<V extends Verb>(actor: string, verb: V, args: Args<V>): OpenCall | null {
    const style = STYLES[verb] as Style<V> | undefined;
    if (style === undefined) return null;
    const lines = style.sent(args, this);
    const seqs = lines.map((line) => this.write(actor, style.op, "invoke", line));
    const all = (phase: Phase, more: Line): void => {
      for (const [i, line] of lines.entries()) this.write(actor, style.op, phase, { ...line, ...more }, seqs[i]);
    };
    return {
      answered: (answer, storeTime, latest = -1) => {
        for (const [i, { phase, of, ...line }] of style.answered(args, answer as Answer<V>, lines, this).entries()) {
          this.write(actor, style.op, phase ?? "ok", { storeTime, latest, ...line }, seqs[of ?? i]);
        }
      },
      failed: (code) => all("fail", style.op === "settle" ? {} : { answer: code }),
      lost: () => all("unknown", {}),
    };
  }

  noteGeneration(id: string, epoch: number, generation: number): void {
    this.#generations.set(`${id}/${epoch}`, generation);
  }

  generationOf(id: string, epoch: number): number {
    return this.#generations.get(`${id}/${epoch}`) ?? -1;
  }

  /** A hash of everything written so far. */
  hash(): number {
    return this.events.reduce((hash, event) => hashText(JSON.stringify(event), hash), 1);
  }
}

/** Type and key as one text. */
export function keyName(type: string, key: string | null): string | null {
  return key === null ? null : `${type}/${key}`;
}

const together = (sent: readonly Line[]): Line[] => [...sent];

const STYLES: { readonly [V in Verb]?: Style<V> } = {
  enqueue: {
    op: "enqueue",
    sent: ([jobs]) =>
      jobs.map(({ id, type, key, payload, delayMs, deadlineMs, maxAttempts, service, ...job }) => {
        const fifo = job.groupConcurrency === 1 ? `${type}/${job.group}` : null;
        const base = { job: id, key: keyName(type, key), payloadHash: hashText(payload), fifo };
        return {
          ...base,
          delayMs,
          deadlineMs: deadlineMs ?? -1,
          maxAttempts,
          service,
          mode: modeOf(key, job),
          kept: keptFor(job),
        };
      }),
    answered: ([jobs], answers, sent) =>
      answers.map((answer, i) => ({ ...sent[i], job: answer.id, asked: jobs[i]?.id ?? null, answer: answer.kind })),
  },
  claim: {
    op: "claim",
    sent: ([{ worker, nonce, ticket, startedThrough }]) => [{ worker, nonce, ticket, startedThrough }],
    answered([{ worker, startedThrough, nonce }], { jobs, now, refused }, _sent, scribe) {
      const taken = jobs.map((job) => {
        scribe.noteGeneration(job.id, job.epoch, job.generation);
        const { id, epoch, generation, attempts, crashes, maxAttempts, ticket, runAt, service, payload } = job;
        const counters = { epoch, generation, attempts, crashes, maxAttempts };
        const key = keyName(job.type, job.key);
        const at = { ticket, runAt, service, storeTime: now, payloadHash: hashText(payload) };
        return { ...counters, ...at, job: id, key, nonce: job.nonce, worker, of: 0 };
      });
      return [...taken, { worker, nonce, startedThrough, storeTime: now, answer: refused ?? "taken", of: 0 }];
    },
  },
  settle: {
    op: "settle",
    sent: ([{ settlements, worker = null, startedThrough = -1 }], scribe) =>
      settlements.map(({ id, epoch, nonce, verdict }) => {
        const charge = "charge" in verdict ? verdict.charge : { attempts: 0, crashes: 0 };
        const delayMs = "delayMs" in verdict ? verdict.delayMs : -1;
        const lease = { job: id, epoch, nonce, generation: scribe.generationOf(id, epoch) };
        const what = { answer: verdict.kind, charge: charge.attempts, crash: charge.crashes, delayMs };
        return { ...lease, ...what, worker, startedThrough };
      }),
    answered: (_args, { stale, locked = [], now }, sent) =>
      sent.map((line) => {
        const isAmong = (leases: readonly Lease[]): boolean =>
          leases.some(({ id, epoch, nonce }) => id === line.job && epoch === line.epoch && nonce === line.nonce);
        if (isAmong(stale)) return { ...line, answer: "lease_lost", storeTime: now, phase: "fail" };
        // Nothing of it was written, because another transaction held the row.
        if (isAmong(locked)) return { ...line, storeTime: now, phase: "fail" };
        return { ...line, storeTime: now };
      }),
  },
  register: {
    op: "register",
    sent: ([{ id, leaseMs }]) => [{ worker: id, leaseMs }],
    answered: (_args, _answer, sent) => together(sent),
  },
  beat: {
    op: "beat",
    sent: ([{ worker, leaseMs, startedThrough }]) => [{ worker, leaseMs, startedThrough }],
    answered: (_args, { alive, now }, [sent]) => [{ ...sent, answer: alive ? "alive" : "given_up", storeTime: now }],
  },
  leave: {
    op: "leave",
    sent: ([worker]) => [{ worker }],
    answered: (_args, _answer, sent) => together(sent),
  },
  expired: {
    op: "expired",
    sent: () => [{}],
    answered: (_args, runs, _sent, scribe) =>
      runs.map(({ job, lease, started }) => {
        scribe.noteGeneration(job.id, lease.epoch, job.generation);
        const { id, worker, generation, attempts, crashes, maxAttempts } = job;
        const counters = { generation, attempts, crashes, maxAttempts };
        return { ...counters, job: id, epoch: lease.epoch, nonce: lease.nonce, worker, started, of: 0 };
      }),
  },
  cancel: {
    op: "cancel",
    sent: ([ids]) => ids.map((job) => ({ job })),
    answered: ([ids], answers) => answers.map((answer, i) => ({ job: ids[i] ?? null, answer })),
  },
  reschedule: {
    op: "reschedule",
    sent: ([changes]) => changes.map(({ id, delayMs = -1 }) => ({ job: id, delayMs })),
    answered: (_args, answers, sent) => answers.map((answer, i) => ({ ...sent[i], answer })),
  },
  redrive: {
    op: "redrive",
    // The record of a run comes last: it is written together with what is sent, or not at all.
    sent: ([requests, fence]) => [
      ...requests.map(({ id, generation, delayMs, redrive = null }) => {
        return { job: id, generation, delayMs, run: redrive, ticket: fence?.version ?? -1 };
      }),
      ...(fence ? recordLines([fence]) : []),
    ],
    answered: ([requests], answers, sent) => [
      ...answers.map((answer, i) => ({ ...sent[i], answer })),
      ...sent.slice(requests.length).map((line, i) => {
        return { ...line, of: requests.length + i, ...(answers.includes("fenced") && { phase: "fail" as const }) };
      }),
    ],
  },
  setCells: {
    op: "record",
    sent: ([changes]) => recordLines(changes),
    answered: ([changes], written, sent) => {
      const places = changes.flatMap((change, place) => (recordLines([change]).length > 0 ? [place] : []));
      return sent.map((line, i) => ({ ...line, ...(!written[places[i] ?? 0] && { phase: "fail" as const }) }));
    },
  },
  repair: {
    op: "repair",
    sent: ([changes]) =>
      changes.map(({ id, generation, payload }) => ({ job: id, generation, payloadHash: hashText(payload) })),
    answered: (_args, answers, sent) => answers.map((answer, i) => ({ ...sent[i], answer })),
  },
  recall: {
    op: "recall",
    sent: ([targets]) => targets.map(({ id, generation }) => ({ job: id, generation })),
    answered: (_args, answers, sent) => answers.map((answer, i) => ({ ...sent[i], answer })),
  },
  remove: {
    op: "remove",
    sent: ([targets]) => [{}, ...targets.map((target) => ({ job: idOf(target) }))],
    // Of several nobody is told which ones were removed.
    answered: ([targets], count, [, ...sent]) => [
      { count },
      ...(count === 0 || targets.length === 1 ? sent.map((line, i) => ({ ...line, count, of: i + 1 })) : []),
    ],
  },
  prune: {
    op: "prune",
    sent: ([retention]) => [{ kept: keptBy(retention) }],
    answered: ([retention], { completed, cancelled, dead }) => [
      { kept: keptBy(retention), count: completed + cancelled + dead },
    ],
  },
  setService: {
    op: "breaker",
    sent([service, version, value]) {
      const { breaker } = recordFrom(value);
      const isHalf = breaker.state === "half_open";
      const answer = isHalf ? "half-open" : breaker.state === "closed" ? "closed" : "open";
      return [{ service, epoch: version + 1, answer, count: isHalf ? breaker.probes.length : 0 }];
    },
    answered: (_args, written, [sent]) => [written ? { ...sent } : { ...sent, phase: "fail" }],
  },
  count: { op: "count", sent: () => [{}], answered: (_args, counts) => [{ counts }] },
};

/** The records of redrive runs among changes of cells; the cell without a name lists them. */
function recordLines(changes: readonly CellChange[]): Line[] {
  return changes.flatMap(({ kind, name, version, value }) => {
    if (kind !== RUN_CELLS || name === "") return [];
    const state = value === null ? "deleted" : runFrom(value)?.state;
    return state === undefined ? [] : [{ run: name, ticket: version ?? -1, answer: state }];
  });
}

/** What a key means; null where there is none, or where it is one job for each key. */
function modeOf(key: string | null, { unique }: Pick<NewJob, "unique">): string | null {
  return key === null || unique === "key" ? null : unique;
}

/** How long a job says that it is kept; null if it does not. */
function keptFor({ keepFinishedMs, keepDeadMs }: JobKeep): Kept | null {
  if (keepFinishedMs === null || keepDeadMs === null) return null;
  return { completedMs: keepFinishedMs, cancelledMs: keepFinishedMs, deadMs: keepDeadMs, keyMs: 0 };
}

function idOf(target: Args<"remove">[0][number]): string {
  return typeof target === "string" ? target : target.id;
}

/** What a prune may take of any type, of jobs that do not say how long they are kept. */
function keptBy({ keep, types, keyMs }: Retention): Kept {
  const all = [keep, ...types];
  const finishedMs = Math.min(...all.map((each) => each.finishedMs));
  const deadMs = Math.min(...all.map((each) => each.deadMs ?? Number.MAX_SAFE_INTEGER));
  return { completedMs: finishedMs, cancelledMs: finishedMs, deadMs, keyMs };
}
