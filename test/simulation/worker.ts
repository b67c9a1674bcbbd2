// A worker in small, standing in until the real one is simulated: register, beat, claim by plan with prefetch, run a
// pretend handler, judge by core, settle. It asks the store for nothing that the real one would not.
//
// A claim without an answer may have taken jobs that nobody here knows of, and a beat would keep them alive for ever. So
// the worker finishes what it holds, leaves, and comes back under a new id; the store gives up what it left behind.
import type { Lease } from "../../src/core/job.ts";
import { plan } from "../../src/core/plan.ts";
import { pastDeadline, type ReleaseReason, runtimeFailure, type Verdict, verdict } from "../../src/core/verdict.ts";
import type { ClaimedJob, Settlement, Store } from "../../src/store/store.ts";
import { hashText } from "../support/history/event.ts";
import { pretend } from "./handler.ts";
import { attempt, NAMES, persist, type Scene } from "./scene.ts";
import type { Actor } from "./world.ts";

/** One identity of a worker, from register to leave. */
interface Session {
  readonly id: string;
  readonly actor: Actor;
  readonly store: Store;
  readonly scene: Scene;
  /** No more claims. */
  over: boolean;
  ticket: number;
  startedThrough: number;
  turn: number;
  waiting: ClaimedJob[];
  readonly running: Map<string, { readonly job: ClaimedJob; readonly abort: AbortController; abandoned: boolean }>;
  readonly outbox: Settlement[];
  sending: boolean;
  nudge: () => void;
}

/** Works, one identity after the other. */
export async function work(actor: Actor, store: Store, scene: Scene): Promise<void> {
  for (;;) {
    const id = actor.system.workerId();
    actor.onCrash(() => {
      if (actor.dice.chance(0.3)) scene.gone.add(id);
    });
    const { leaseMs } = scene.settings;
    await persist(actor, () => store.register({ id, leaseMs, pid: 1, host: "simulated", release: null }));
    const session: Session = {
      id,
      actor,
      store,
      scene,
      over: false,
      ticket: 1,
      startedThrough: 0,
      turn: 0,
      waiting: [],
      running: new Map(),
      outbox: [],
      sending: false,
      nudge: () => {},
    };
    await Promise.all([beating(session), claiming(session), settling(session)]);
    await persist(actor, () => store.leave(id));
  }
}

function holdsNothing({ waiting, running, outbox, sending }: Session): boolean {
  return waiting.length === 0 && running.size === 0 && outbox.length === 0 && !sending;
}

async function beating(session: Session): Promise<void> {
  const { actor, store, scene, id } = session;
  while (!(session.over && holdsNothing(session))) {
    await actor.system.sleep(scene.settings.beatMs);
    const { startedThrough } = session;
    const answer = await attempt(() => store.beat({ worker: id, leaseMs: scene.settings.leaseMs, startedThrough }));
    if (answer === null) continue;
    for (const lease of answer.cancel) session.running.get(nameOf(lease))?.abort.abort("cancel");
    if (!answer.alive) return giveUp(session);
  }
}

/** The store says that this worker is none any more. Some runs stop at once, some go on to the end and are refused. */
function giveUp(session: Session): void {
  session.over = true;
  session.waiting = [];
  for (const run of session.running.values()) {
    run.abandoned = session.actor.dice.chance(0.5);
    if (run.abandoned) run.abort.abort("lost");
  }
  session.nudge();
}

async function claiming(session: Session): Promise<void> {
  const { actor, scene } = session;
  const leavesAt = actor.system.monotonic() + actor.dice.between(3000, 40_000);
  while (!session.over) {
    const took = await claimOnce(session);
    if (actor.system.monotonic() > leavesAt && scene.world.now < scene.calmAt) shutDown(session);
    if (took === 0) await actor.system.sleep(scene.settings.pollMs);
    else await actor.system.sleep(actor.dice.between(1, 100));
  }
}

/** Asks for as much as there is room for; how many jobs came. */
async function claimOnce(session: Session): Promise<number> {
  const { store, scene, actor, waiting, running, ticket } = session;
  const free = Math.max(0, scene.settings.concurrency - running.size);
  const want = free + scene.settings.prefetch - waiting.length;
  if (want <= 0) return 0;
  const control = await attempt(() => store.control());
  const page = await attempt(() => store.lanes(null, 100));
  if (control === null || page === null || page.lanes.length === 0) return 0;
  const grants = new Map<string, number>();
  for (const { kind, name, until } of control.pauses)
    if (until === null || until > control.now) grants.set(`${kind}:${name}`, 0);
  const suspect = [...waiting, ...[...running.values()].map((run) => run.job)].some((job) => job.crashes > 0);
  const appetite = {
    want,
    serves: new Set(NAMES.types),
    queues: null,
    grants,
    suspects: suspect || free === 0 ? 0 : 1,
  };
  const quotas = plan(page.lanes, { ...appetite, turn: session.turn++ });
  if (quotas.length === 0) return 0;
  const nonce = actor.system.nonce();
  const startedThrough = Math.max(session.startedThrough, ticket + Math.max(0, free - waiting.length) - 1);
  const request = { worker: session.id, quotas, limit: want, nonce, control: control.version, ticket, startedThrough };
  const answer = await attempt(() => store.claim(request));
  if (answer === null) {
    session.over = true;
    session.nudge();
    return 0;
  }
  if (answer.refused === "worker") giveUp(session);
  session.ticket += answer.jobs.length;
  if (session.over) for (const job of answer.jobs) post(session, job, released(session, job, "not_started"));
  else session.waiting.push(...answer.jobs);
  fillSlots(session);
  return answer.jobs.length;
}

function fillSlots(session: Session): void {
  const { running, scene } = session;
  while (running.size < scene.settings.concurrency) {
    const job = session.waiting.shift();
    if (job === undefined) return;
    session.startedThrough = Math.max(session.startedThrough, job.ticket);
    execute(session, job).catch((error: unknown) => scene.world.fail(error));
  }
}

async function execute(session: Session, job: ClaimedJob): Promise<void> {
  const { scene, actor } = session;
  const { id, epoch, nonce, generation, payload } = job;
  const run = { job, abort: new AbortController(), abandoned: false };
  session.running.set(nameOf(job), run);
  const line = { job: id, epoch, nonce, generation, payloadHash: hashText(payload), worker: session.id };
  scene.scribe.write(actor.name, "run", "invoke", line);
  const decided = await judge(session, job, run.abort.signal);
  session.running.delete(nameOf(job));
  if (!run.abandoned) post(session, job, decided);
  fillSlots(session);
  session.nudge();
}

async function judge(session: Session, job: ClaimedJob, signal: AbortSignal): Promise<Verdict> {
  const { scene, actor } = session;
  const now = job.startedAt ?? 0;
  if (!job.cancelRequested && pastDeadline(job, now)) {
    const failure = runtimeFailure("timeout", "DeadlinePassed", "The deadline passed before the run");
    return { kind: "dead", reason: "deadline", charge: { attempts: 0, crashes: 0 }, failure };
  }
  const from = actor.system.monotonic();
  const outcome = await pretend(actor, scene, job, signal);
  return verdict(job, outcome, scene.policy, now + actor.system.monotonic() - from, actor.system.random);
}

function released(session: Session, job: ClaimedJob, reason: ReleaseReason): Verdict {
  const outcome = { kind: "released", reason, delayMs: 0 } as const;
  return verdict(job, outcome, session.scene.policy, 0, session.actor.system.random);
}

/** Stops claiming, hands back what has not started, and asks some of the rest to stop. */
function shutDown(session: Session): void {
  session.over = true;
  for (const job of session.waiting.splice(0)) post(session, job, released(session, job, "not_started"));
  for (const run of session.running.values()) if (session.actor.dice.chance(0.5)) run.abort.abort("shutdown");
  session.nudge();
}

function post(session: Session, { id, epoch, nonce }: ClaimedJob, decided: Verdict): void {
  session.outbox.push({ id, epoch, nonce, verdict: decided });
  session.nudge();
}

/** Sends verdicts, all that came up meanwhile together, and the same again until there is an answer. */
async function settling(session: Session): Promise<void> {
  const { actor, store, outbox, id } = session;
  while (!(session.over && holdsNothing(session))) {
    if (outbox.length === 0) {
      await new Promise<void>((resolve) => {
        session.nudge = resolve;
      });
      continue;
    }
    session.sending = true;
    const settlements = outbox.splice(0);
    await persist(actor, () => store.settle({ settlements, worker: id, startedThrough: session.startedThrough }));
    session.sending = false;
  }
}

function nameOf(lease: Pick<Lease, "id" | "epoch">): string {
  return `${lease.id}/${lease.epoch}`;
}
