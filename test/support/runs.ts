// The moves of a worker, one call each, for tests that are about what comes after them.
import { isRedriveError } from "../../src/core/errors.ts";
import type { Job, Lease, State } from "../../src/core/job.ts";
import type { ActiveLane } from "../../src/core/lane.ts";
import type { NewJob } from "../../src/core/new-job.ts";
import type { ClaimAnswer, ClaimedJob, ClaimRequest, EnqueueAnswer, Settlement, Store } from "../../src/store/store.ts";
import { newJob } from "./new-job.ts";
import { cancel, complete, dead, release } from "./verdicts.ts";

let count = 0;

/** 128 bits that were not used before. */
export function nextNonce(): string {
  count += 1;
  return count.toString(16).padStart(32, "0");
}

/** A registered worker; answers its id. */
export async function signUp(store: Store, leaseMs = 30_000): Promise<string> {
  count += 1;
  const id = `worker-${count}`;
  await store.register({ id, leaseMs, pid: 4711, host: "host-a", release: "1.2.3" });
  return id;
}

/** Enqueues one job and answers its id. */
export async function add(store: Store, overrides: Partial<NewJob> = {}): Promise<string> {
  const job = newJob(overrides);
  const [answer] = await store.enqueue([job]);
  if (answer?.kind !== "created") throw new Error(`The job was not created but ${JSON.stringify(answer)}.`);
  return job.id;
}

/** The job of this id, which must be there. */
export async function read(store: Store, id: string): Promise<Job> {
  const [job] = await store.get([id]);
  if (!job) throw new Error(`There is no job ${id}.`);
  return job;
}

/** Every lane with work due now, read in pages of two. */
export async function dueLanes(store: Store): Promise<ActiveLane[]> {
  const lanes: ActiveLane[] = [];
  let after: number | null = null;
  do {
    const page = await store.lanes(after, 2);
    lanes.push(...page.lanes);
    after = page.next;
  } while (after !== null);
  return lanes;
}

/** What a test says about a claim; the rest is chosen so that the claim takes whatever is due. */
export type Taking = Partial<ClaimRequest> & { readonly only?: (lane: ActiveLane) => boolean };

/** Claims by all due lanes in their order, and answers as the store does. */
export async function claimBy(store: Store, worker: string, taking: Taking = {}): Promise<ClaimAnswer> {
  const { only = () => true, ...request } = taking;
  const quotas = (await dueLanes(store)).filter(only).map(({ lane }) => ({ lane, limit: 1_000 }));
  const control = (await store.control()).version;
  return store.claim({
    worker,
    quotas,
    limit: 1_000,
    nonce: nextNonce(),
    control,
    ticket: 1,
    startedThrough: 0,
    ...request,
  });
}

/** Claims as `claimBy` does and must not be refused. */
export async function take(store: Store, worker?: string, taking: Taking = {}): Promise<readonly ClaimedJob[]> {
  const { jobs, refused } = await claimBy(store, worker ?? (await signUp(store)), taking);
  if (refused !== null) throw new Error(`The claim was refused: ${refused}.`);
  return jobs;
}

/** Claims the one job of this id, which must be due and the first of its lane. */
export async function takeOne(store: Store, id: string, worker?: string, taking: Taking = {}): Promise<ClaimedJob> {
  const { type, priority, tenant } = await read(store, id);
  const only = (lane: ActiveLane) => lane.type === type && lane.priority === priority && lane.tenant === tenant;
  const [job] = await take(store, worker, { limit: 1, only, ...taking });
  if (job?.id !== id) throw new Error(`Claimed ${job?.id ?? "nothing"} instead of ${id}.`);
  return job;
}

/** Enqueues a job of a type of its own and claims it. */
export async function start(store: Store, overrides: Partial<NewJob> = {}, worker?: string): Promise<ClaimedJob> {
  count += 1;
  return takeOne(store, await add(store, { type: `type-${count}`, ...overrides }), worker);
}

/** The lease of a claimed job and nothing else. */
export function leaseOf({ id, epoch, nonce }: Lease): Lease {
  return { id, epoch, nonce };
}

/** Settles one run, which must not be stale, and answers the job as it is afterwards. */
export async function end(store: Store, lease: Lease, verdict: Settlement["verdict"]): Promise<Job> {
  const { stale } = await store.settle({ settlements: [{ ...leaseOf(lease), verdict }] });
  if (stale.length > 0) throw new Error(`The lease of ${lease.id} was stale.`);
  return read(store, lease.id);
}

/** True if the store refuses the verdict because the lease is not the current one. */
export async function isStale(store: Store, lease: Lease, verdict: Settlement["verdict"]): Promise<boolean> {
  const { stale } = await store.settle({ settlements: [{ ...lease, verdict }] });
  return stale.length === 1;
}

/** Enqueues, claims and settles with the verdict. */
export async function finish(
  store: Store,
  verdict: Settlement["verdict"],
  overrides: Partial<NewJob> = {},
): Promise<Job> {
  return end(store, await start(store, overrides), verdict);
}

/** A job in the state asked for, with the last lease it was run under. */
export async function inState(store: Store, state: State): Promise<{ readonly id: string; readonly lease: Lease }> {
  const run = await start(store);
  const verdicts = { queued: release(), completed: complete(), dead: dead(), cancelled: cancel() };
  if (state !== "running") await end(store, run, verdicts[state]);
  return { id: run.id, lease: leaseOf(run) };
}

const TRIES = 200;

/** Enqueues as a producer does: while another open transaction holds the key, it asks again. */
export async function enqueuePatiently(store: Store, job: NewJob): Promise<EnqueueAnswer> {
  for (let tries = 1; ; tries++) {
    try {
      const [answer] = await store.enqueue([job]);
      return answer as EnqueueAnswer;
    } catch (error) {
      const isHeld = isRedriveError(error, "store_unavailable") && error.details.key === "locked";
      if (!isHeld || tries === TRIES) throw error;
    }
  }
}
