// The books of a run: what was wanted, what the store says, what the events told and what the service saw by its own clock,
// each counted by itself and compared. A run is good only if all of them agree.
import type { DeadLetter, Job, Redrive } from "redrive";
import type { PriceRequest } from "./client.ts";
import { BUDGET, OPENS_AFTER, PACE, PROBES, QUEUE, RAMP_MS } from "./jobs.ts";
import { type Call, priceOf, type PriceService, QUOTA, RETRY_AFTER_SECONDS } from "./service.ts";
import type { Visits } from "./visitors.ts";

/** What was wanted, and what was seen on the way. */
export interface Run {
  readonly service: Pick<PriceService, "calls" | "now">;
  /** The request of each job. */
  readonly requests: Map<string, PriceRequest>;
  /** The customer whose key had expired. */
  readonly expired: string;
  /** Slots of all workers. */
  readonly slots: number;
  readonly visits: Visits;
  /** Ids of the jobs that need no service. */
  readonly stock: string[];
  /** Attempts charged because of the outage, as the events told. */
  charged: number;
  /** When the breaker opened and closed, by the service's clock. */
  openedAt: number | null;
  closedAt: number | null;
  /** Jobs that need no service and got done in between. */
  meanwhile: number;
  waitingAtClose: number;
  redriven: number;
}

/** One line of the books. */
export interface Check {
  readonly ok: boolean;
  readonly text: string;
}

/** How much later than its time something may be noticed. */
const LATE_MS = 250;

/** Balances the books. */
export async function balance(redrive: Redrive, run: Run): Promise<Check[]> {
  const all = new Map<string, Job>();
  for await (const job of redrive.jobs.all({ queue: QUEUE })) all.set(job.id, job);
  const jobs = [...run.requests.keys()].flatMap((id) => all.get(id) ?? []);
  const letters: DeadLetter[] = [];
  for await (const letter of redrive.deadLetters.all({ type: "refresh-price", redriven: true }))
    if (run.requests.has(letter.job.id)) letters.push(letter);
  const calls = run.service.calls.filter(({ from }) => from === "job");
  return [
    checkSums(run, jobs),
    checkAnswers(run, jobs, calls),
    checkRetryAfter(calls),
    checkPace(calls),
    checkOutage(run, calls, jobs),
    checkRamp(run, calls),
    checkBudget(run, calls),
    checkCredentials(run, letters, all, calls),
    checkStock(run, all),
    checkVisitors(run),
  ];
}

function checkSums({ requests }: Run, jobs: readonly Job[]): Check {
  const count = (state: Job["state"]): number => jobs.filter((job) => job.state === state).length;
  const [completed, dead] = [count("completed"), count("dead")];
  const wanted = [...requests.values()].filter(({ item }) => item < 0).length;
  const ok = jobs.length === requests.size && completed + dead === requests.size && dead === wanted;
  return { ok, text: `${requests.size} requests = ${completed} completed + ${dead} dead (no such item); none lost` };
}

function checkAnswers({ requests }: Run, jobs: readonly Job[], calls: readonly Call[]): Check {
  const answered = new Set(calls.filter(({ status }) => status === 200).map(({ request }) => request));
  const completed = jobs.filter(({ state }) => state === "completed");
  const right = completed.filter(({ id, result }) => {
    const { item, request } = requests.get(id) ?? { item: 0, request: "" };
    const { price } = JSON.parse(result ?? "{}") as { readonly price?: number };
    return price === priceOf(item) && answered.has(request);
  }).length;
  return { ok: right === completed.length, text: `${right} right prices, each answered by the service's own books` };
}

/** A `Retry-After` that one job is told holds for all jobs of the service. */
function checkRetryAfter(calls: readonly Call[]): Check {
  const told = calls.filter(({ status }) => status === 429);
  const first = told[0]?.at ?? 0;
  const quiet = { from: first + 2 * LATE_MS, until: first + RETRY_AFTER_SECONDS * 1_000 };
  const inside = calls.filter(({ at }) => at > quiet.from && at < quiet.until).length;
  const text = `429 for ${told.length} calls: ${inside} calls of any job in the second that it asked for`;
  // A straggler or two were on their way already.
  return { ok: told.length > 0 && inside <= 2, text };
}

function checkPace(calls: readonly Call[]): Check {
  let most = 0;
  for (let first = 0, last = 0; last < calls.length; last += 1) {
    while ((calls[first]?.at ?? 0) <= (calls[last]?.at ?? 0) - 1_000) first += 1;
    most = Math.max(most, last - first + 1);
  }
  const text = `rate limit ${PACE}/s: at most ${most} in any second by the service's clock, it allows ${QUOTA}`;
  // Some calls take longer on their way than others; that is what the distance to the quota is for.
  return { ok: most <= QUOTA, text };
}

/** An outage costs what it takes to notice it, however long it lasts. */
function checkOutage({ charged, slots, openedAt }: Run, calls: readonly Call[], jobs: readonly Job[]): Check {
  const met = calls.filter(({ status }) => status === 503).length;
  // What opens the breaker, seen by each of two workers, and what they run at that moment.
  const most = 2 * OPENS_AFTER + slots;
  const died = jobs.filter(({ state, failure }) => state === "dead" && failure?.code === "503").length;
  const ok = openedAt !== null && charged <= met && charged <= most && died === 0;
  const text = `outage: ${charged} attempts charged, at most ${most}; ${met - charged} calls not charged, ${died} dead`;
  return { ok, text };
}

/** From as many a second as there are probes, doubling ten times over the ramp: never more than that adds up to. */
function checkRamp({ closedAt, waitingAtClose }: Run, calls: readonly Call[]): Check {
  if (closedAt === null) return { ok: false, text: "the breaker never closed" };
  const doubleMs = RAMP_MS / 10;
  const allowed = (ms: number): number => 1 + (PROBES * doubleMs * (2 ** (ms / doubleMs) - 1)) / Math.LN2 / 1_000;
  const after = calls.filter(({ at }) => at >= closedAt).map(({ at }) => at - closedAt);
  const above = after.filter((ms, n) => ms < RAMP_MS && n + 1 > allowed(ms + LATE_MS)).length;
  const inSecond = after.filter((ms) => ms < 1_000).length;
  const text = `return: ${waitingAtClose} jobs waited, ${inSecond} calls in the first second; ${above} above the ramp`;
  return { ok: above === 0, text };
}

function checkBudget({ service }: Run, calls: readonly Call[]): Check {
  const retries = calls.filter(({ attempt }) => attempt > 1).length;
  const successes = calls.filter(({ status }) => status === 200).length;
  const most = Math.floor(successes * BUDGET.share + (service.now() / 1_000) * BUDGET.floorPerSecond);
  return { ok: retries <= most, text: `retry budget: ${retries} retries for ${successes} answers, at most ${most}` };
}

/** A wrong key is worth no retry; a new one is worth a redrive. */
function checkCredentials(
  { requests, expired, redriven }: Run,
  letters: readonly DeadLetter[],
  jobs: ReadonlyMap<string, Job>,
  calls: readonly Call[],
): Check {
  const ids = [...requests].filter(([, { customer, item }]) => customer === expired && item >= 0).map(([id]) => id);
  const ours = letters.filter(({ failure }) => failure.class === "authentication");
  const refused = calls.filter(({ status }) => status === 401).length;
  const completed = ids.filter((id) => jobs.get(id)?.state === "completed" && jobs.get(id)?.generation === 2).length;
  const counts = [ours.length, refused, redriven, completed];
  const text = `expired key: ${refused} calls, ${ours.length} dead letters; ${redriven} redriven, ${completed} completed`;
  return { ok: counts.every((count) => count === ids.length) && ids.every((id) => requests.has(id)), text };
}

/** What needs no service goes on while the breaker is open. */
function checkStock({ stock, meanwhile }: Run, jobs: ReadonlyMap<string, Job>): Check {
  const done = stock.filter((id) => jobs.get(id)?.state === "completed").length;
  const text = `other work: ${done} of ${stock.length} jobs done, ${meanwhile} of them while the breaker was open`;
  return { ok: done === stock.length && meanwhile > 0, text };
}

function checkVisitors({ visits, service }: Run): Check {
  const { started, answered, fromCache, failed } = visits;
  const known = new Set(
    service.calls.filter(({ from, status }) => from === "visitor" && status === 200).map(({ request }) => request),
  ).size;
  const ok = started === answered + fromCache + failed && answered <= known && fromCache > 0;
  const text = `${started} visitors = ${answered} answered + ${fromCache} with the last known price + ${failed} failed`;
  return { ok, text };
}
