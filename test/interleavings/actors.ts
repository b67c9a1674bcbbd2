// What actors do to one schema: enqueue with every mode of keys, claim, settle, prune, give each other up, send dead letters
// back under a fence and recall them, cancel, rewrite fingerprints, and hold rows in transactions of their own, as people do
// who look by hand.
import pg from "pg";
import { isRedriveError } from "../../src/core/errors.ts";
import { type NewJob, UNIQUE_MODES, type UniqueMode } from "../../src/core/new-job.ts";
import type { PostgresStore } from "../../src/store/postgres/index.ts";
import type { ClaimedJob, Settlement } from "../../src/store/store.ts";
import type { Dice } from "../simulation/dice.ts";
import { digestOf, newJob } from "../support/new-job.ts";
import { claimBy, end, leaseOf, signUp } from "../support/runs.ts";
import { complete, dead, release, retry } from "../support/verdicts.ts";

/** What all actors of a seed know of the jobs, to be compared with the tables at the end. */
export interface Book {
  /** Jobs of which an enqueue said that it created them. */
  readonly created: Set<string>;
  /** Jobs with the generation in which a settle or a recall said that it ended them, and how often. */
  readonly ended: Map<string, number>;
  /** The same jobs, and those that were cancelled: a prune may delete them. */
  readonly endedJobs: Set<string>;
  /** The workers in the order in which they signed up. */
  readonly workers: string[];
}

/** An actor with a store of its own. */
export interface Acting {
  readonly store: PostgresStore;
  readonly dice: Dice;
  readonly book: Book;
  readonly server: string;
  readonly schema: string;
  /** How many verbs it plays. */
  readonly rounds: number;
  /** What it does; absent, everything. */
  readonly only?: readonly string[] | undefined;
  /** Its present worker. */
  worker: string;
}

type Verb = (hand: Hand) => Promise<void>;

/** An actor and what it has claimed. */
interface Hand extends Acting {
  readonly runs: ClaimedJob[];
}

/** The redrive runs of the actors. */
const RUNS = ["r1", "r2"] as const;

const VERBS: Readonly<Record<string, readonly [weight: number, Verb]>> = {
  enqueue: [6, enqueue],
  claim: [3, claim],
  settle: [5, settle],
  prune: [2, prune],
  "give up": [2, giveUp],
  redrive: [3, redrive],
  recall: [2, recall],
  cancel: [1, cancelSome],
  fingerprints: [1, setFingerprints],
  "sign up": [1, renew],
  look: [2, holdRows],
};

/** A retry that is due at once. */
const again = (): ReturnType<typeof retry> => retry({ delayMs: 0 });

/** Plays an actor: some verbs in turn, as the dice fall. */
export async function play(acting: Acting, say: (verb: string) => void): Promise<void> {
  const verbs = Object.entries(VERBS).flatMap(([name, [weight, verb]]) =>
    Array.from({ length: acting.only?.includes(name) === false ? 0 : weight }, () => ({ name, verb })),
  );
  const hand: Hand = { ...acting, runs: [] };
  for (let round = 0; round < acting.rounds; round++) {
    // Who holds nothing has nothing to settle.
    const [chosen, claiming] = [acting.dice.pick(verbs), { name: "claim", verb: claim }];
    const { name, verb } = chosen.verb === settle && hand.runs.length === 0 ? claiming : chosen;
    say(name);
    try {
      await verb(hand);
    } catch (error) {
      // A key that another transaction holds is an answer; whoever asked would try again.
      if (!isRedriveError(error, "store_unavailable")) throw error;
    }
  }
}

async function enqueue({ store, dice, book }: Hand): Promise<void> {
  const jobs = dice.chance(0.3) ? plainJobs(dice) : Array.from({ length: dice.between(1, 2) }, () => jobOf(dice));
  const answers = await store.enqueue(jobs);
  for (const { kind, id } of answers) if (kind === "created") book.created.add(id);
}

/** Two without keys that mostly belong to different tenants, some of whom are new: their lanes have to be made. */
function plainJobs(dice: Dice): NewJob[] {
  return Array.from({ length: 2 }, () => newJob({ type: "plain", tenant: `t${dice.between(1, 12)}` }));
}

/** With a key of its mode, of a group, or plain; few of each, so that actors meet. */
function jobOf(dice: Dice): NewJob {
  const payload = JSON.stringify({ body: dice.between(1, 2) });
  const kind = dice.between(1, 6);
  if (kind === 1) return newJob({ type: "plain", payload });
  if (kind === 2) return newJob({ type: "grouped", payload, group: dice.pick(["a", "b"]), groupConcurrency: 1 });
  return keyed(dice.pick(UNIQUE_MODES), payload);
}

function keyed(unique: UniqueMode, payload: string): NewJob {
  return newJob({ type: "keyed", payload, key: `${unique}-1`, unique, digest: digestOf(payload) });
}

/** How many have died before actors begin that do little but send them back. */
const DEAD = 8;

/** What may have been before: dead letters, and a key whose last job has ended. */
export async function prepare({ store, dice, worker, only = [] }: Acting): Promise<void> {
  if (only.includes("redrive")) {
    await store.enqueue(Array.from({ length: DEAD }, (_, n) => newJob(n % 4 === 0 ? { group: "a" } : {})));
    for (let open = DEAD; open > 0; )
      for (const run of (await claimBy(store, worker)).jobs) {
        await end(store, run, dead());
        open -= 1;
      }
    return;
  }
  for (const unique of UNIQUE_MODES) {
    if (dice.chance(0.5)) continue;
    await store.enqueue([keyed(unique, '{"body":1}')]);
    for (const run of (await claimBy(store, worker)).jobs) await end(store, run, complete());
  }
}

async function claim(hand: Hand): Promise<void> {
  const { jobs } = await claimBy(hand.store, hand.worker, { limit: hand.dice.between(1, 3) });
  hand.runs.push(...jobs);
}

/** Begins under a new name, as a worker does that was given up. */
async function renew(hand: Hand): Promise<void> {
  hand.worker = await signUp(hand.store);
  hand.book.workers.push(hand.worker);
}

async function settle({ store, dice, book, runs, worker }: Hand): Promise<void> {
  const run = runs.shift() as ClaimedJob;
  const verdict: Settlement["verdict"] = dice.pick([complete(), complete(), again(), dead(), release()]);
  const settlement = { ...leaseOf(run), verdict, redriven: run.generation > 1 };
  const { stale, locked = [] } = await store.settle({ settlements: [settlement], worker });
  if (locked.length > 0) runs.push(run);
  else if (stale.length === 0 && (verdict.kind === "complete" || verdict.kind === "dead"))
    ended(book, run.id, run.generation);
}

function ended(book: Book, id: string, generation: number): void {
  const name = `${id} ${generation}`;
  book.ended.set(name, (book.ended.get(name) ?? 0) + 1);
  book.endedJobs.add(id);
}

/** Sends some dead letters back by one of two runs, fenced by the cell of the run; others do the same meanwhile. */
async function redrive({ store, dice }: Hand): Promise<void> {
  const run = dice.pick(RUNS);
  const { cells } = await store.cells([{ kind: "redrive", name: run }]);
  const { items } = await store.deadLetters({ limit: 3, sort: "enqueued", payloads: false });
  const requests = items.map(({ job, generation }) => ({ id: job.id, generation, delayMs: 0, redrive: run }));
  const fence = { kind: "redrive", name: run, holder: "", version: cells[0]?.version ?? 0, value: "1" };
  if (requests.length > 0) await store.redrive(requests, dice.chance(0.8) ? fence : undefined);
}

/** Takes back what a run has sent, in an order of its own. */
async function recall({ store, dice, book }: Hand): Promise<void> {
  const query = { redrive: dice.pick(RUNS), outcome: "none", oldest: dice.chance(0.5), limit: 3 } as const;
  const { items } = await store.deadLetters({ ...query, payloads: false });
  const targets = items.map(({ job, generation }) => ({ id: job.id, generation }));
  const answers = targets.length > 0 ? await store.recall(targets) : [];
  for (const [at, { id, generation }] of targets.entries())
    if (answers[at] === "recalled") ended(book, id, generation + 1);
}

async function cancelSome({ store, dice, book }: Hand): Promise<void> {
  const { items } = await store.list({ state: "queued", limit: 3 });
  const ids = items.map(({ id }) => id).filter(() => dice.chance(0.5));
  const answers = await store.cancel(ids);
  // A run that was asked to stop ends as cancelled, whatever it says of itself.
  for (const [at, id] of ids.entries()) if (answers[at] !== "missing") book.endedJobs.add(id);
}

/** What upkeep does after an update of the rules: other fingerprints for failures that are kept. */
async function setFingerprints({ store, dice }: Hand): Promise<void> {
  const fingerprint = dice.pick(["f1", "f2"]);
  const { items } = await store.failures({ after: 0, limit: 50 });
  const others = items.filter(({ failure }) => failure.fingerprint !== fingerprint);
  await store.setFingerprints(
    others.map(({ of, seq, at, failure: { fingerprint: was } }) => ({ of, seq, at, was, fingerprint })),
  );
}

/** As often as it takes to delete an empty lane, which goes in steps, or less. */
async function prune({ store, dice }: Hand): Promise<void> {
  const all = { keep: { finishedMs: 0, deadMs: 0 }, types: [], keyMs: 0, laneMs: 0, limit: 100, isFirst: true };
  for (let steps = dice.pick([1, 1, 3]); steps > 0; steps--) await store.prune(all);
}

async function giveUp({ store, dice, book, worker }: Hand): Promise<void> {
  const others = book.workers.filter((id) => id !== worker);
  const runs = await store.expired({ gone: [dice.pick(others)], limit: 100, lapsedBy: 0 });
  const settlements = runs.map((run) => ({ ...run.lease, verdict: again(), redriven: run.job.generation > 1 }));
  if (settlements.length > 0) await store.settle({ settlements });
}

/** A person at a prompt: locks a row of some table in a transaction, looks around, and lets it go some time later. */
async function holdRows({ dice, server, schema }: Hand): Promise<void> {
  const client = new pg.Client({ connectionString: server });
  const [table, order] = dice.pick([
    ["worker", "id"],
    ["worker", "id desc"],
    ["job", "seq"],
    ["job_key", "key"],
  ] as const);
  await client.connect();
  try {
    await client.query("begin");
    await client.query(`select 1 from ${schema}.${table} order by ${order} limit 1 for update skip locked`);
    for (let looks = dice.between(1, 4); looks > 0; looks--) await client.query("select 1");
    await client.query("commit");
  } finally {
    await client.end();
  }
}
