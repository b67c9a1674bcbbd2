// Answers the routes of jobs and dead letters.
import { RedriveError } from "../../core/errors.ts";
import type { Holding } from "../../core/holding.ts";
import type { Job } from "../../core/job.ts";
import { nothingHeld } from "../../core/holding.ts";
import { attemptForm, jobForm, letterForm } from "../../operate/job-forms.ts";
import { isoTime, rawJson } from "../../operate/json-form.ts";
import { retryNow } from "../../operate/retry-now.ts";
import { explanationForm, pageForm, runRecordForm, tallyForm } from "../../operate/view-forms.ts";
import type { Redrive } from "../../redrive-api.ts";
import type { ActionOptions } from "../../report/event-log.ts";
import { readHolding } from "../../services/holding.ts";
import { payloadHash } from "../../store/payloads.ts";
import { type Handlers, HttpReply } from "../call.ts";
import type { RouteName } from "../routes.ts";
import { bulk } from "./bulk.ts";
import { changedMeanwhile, letterFilterOf, letterPage, noted, shown, withPayloads } from "./letters.ts";
import { enqueue } from "./enqueue.ts";

/** Most dead letters that a count looks at. */
const LOOK_AT = 10_000;

/** The states that people see depend on pauses and breakers only for jobs that wait. */
async function holdingFor({ store }: Redrive, jobs: readonly Pick<Job, "state">[]): Promise<Holding> {
  if (jobs.some(({ state }) => state === "queued")) return readHolding(store);
  return nothingHeld(0);
}

/** Answers a job of this id, or `not_found`. */
async function jobOf(redrive: Redrive, id: string): Promise<Job> {
  const job = await redrive.jobs.get(id);
  if (job) return job;
  throw new RedriveError("not_found", `There is no job ${JSON.stringify(id.slice(0, 80))}.`, { details: { id } });
}

/** The handlers. */
export const WORK_HANDLERS: Handlers<
  Extract<RouteName, `jobs.${string}` | `letters.${string}` | "runs.list" | "bulk.act">
> = {
  async "jobs.list"(call) {
    const { payloads: _, ...query } = call.query;
    const isWhole = withPayloads(call);
    const page = await call.redrive.jobs.list({ ...query, payloads: isWhole } as Parameters<
      Redrive["jobs"]["list"]
    >[0]);
    const holding = await holdingFor(call.redrive, page.items);
    await noted(
      call,
      page.items.map(({ id }) => id),
      isWhole,
    );
    return { items: page.items.map((job) => shown(jobForm(job, holding), isWhole)), ...pageForm(page) };
  },
  "jobs.enqueue": enqueue,
  async "jobs.get"(call) {
    const { job, history } = await call.redrive.jobs.show(call.params.id);
    const isWhole = withPayloads(call);
    const holding = await holdingFor(call.redrive, [job]);
    await noted(call, [job.id], isWhole);
    return { ...shown(jobForm(job, holding), isWhole), history: history.map(attemptForm) };
  },
  async "jobs.attempts"({ redrive, params }) {
    const [{ history }, runs] = await Promise.all([redrive.jobs.show(params.id), redrive.runs.history(params.id)]);
    return { items: history.map(attemptForm), runs: runs.map(runRecordForm) };
  },
  "jobs.explain": async ({ redrive, params }) => explanationForm(await redrive.jobs.explain(params.id)),
  async "jobs.payloads"(call) {
    const { id } = await jobOf(call.redrive, call.params.id);
    const versions = await call.redrive.deadLetters.payloads(id);
    await noted(call, [id], true);
    return {
      items: versions.map(({ payload, at, ...rest }) => ({ ...rest, at: isoTime(at), payload: rawJson(payload) })),
    };
  },
  async "jobs.payload"(call) {
    const { id, payload } = await jobOf(call.redrive, call.params.id);
    const etag = `"${payloadHash(payload)}"`;
    if (call.request.headers.get("if-none-match") === etag)
      return new HttpReply(null, { status: 304, headers: { etag } });
    await noted(call, [id], true);
    return new HttpReply(payload, { headers: { "content-type": "application/json", etag } });
  },
  async "jobs.edit"({ redrive, as, params, query, request, text }) {
    const { why, dryRun = false } = query;
    const because = { dryRun, ...(why !== undefined && { why }) };
    const match = request.headers.get("if-match");
    if (match === null) return as.deadLetters.edit(params.id, text, because);
    const job = await jobOf(redrive, params.id);
    if (match !== `"${payloadHash(job.payload)}"`) throw changedMeanwhile("payload");
    const { payload, generation } = job;
    return as.deadLetters.edit(params.id, text, { ...because, seen: { payload, generation } });
  },
  "jobs.undo": ({ as, params, body }) => as.deadLetters.undo(params.id, body as ActionOptions),
  async "jobs.cancel"({ redrive, as, params, body }) {
    await jobOf(redrive, params.id);
    return as.jobs.cancel(params.id, body as ActionOptions);
  },
  async "jobs.retry"({ redrive, as, params, body }) {
    const { state, generation: now } = await jobOf(redrive, params.id);
    const { generation = now, ...because } = body;
    // Sent back to work since the caller looked, perhaps by this very call, whose answer was lost.
    if (generation < now) return { redriven: 0, rescheduled: 0, refused: 0, missing: 0 };
    if (generation > now) throw changedMeanwhile("job");
    const sum = await retryNow(redrive.store, as, [params.id], because as ActionOptions);
    if (sum.refused > 0)
      throw new RedriveError(
        "illegal_transition",
        `Job ${params.id} is ${state}: only dead and waiting jobs are retried.`,
        {
          details: { id: params.id, state },
        },
      );
    return sum;
  },
  async "jobs.reschedule"({ redrive, as, params, body }) {
    const { state } = await jobOf(redrive, params.id);
    const sum = await as.jobs.reschedule(params.id, body as Parameters<Redrive["jobs"]["reschedule"]>[1]);
    if (sum.refused > 0)
      throw new RedriveError("illegal_transition", `Job ${params.id} is ${state}: only waiting jobs are rescheduled.`, {
        details: { id: params.id, state },
      });
    return sum;
  },
  async "runs.list"({ redrive, query }) {
    const page = await redrive.runs.list(query as Parameters<Redrive["runs"]["list"]>[0]);
    return { items: page.items.map(runRecordForm), ...pageForm(page) };
  },
  "bulk.act": bulk,
  async "letters.list"(call) {
    const { payloads: _, limit, cursor, oldest, ...filter } = call.query;
    const isWhole = withPayloads(call);
    const more = { ...(limit && { limit }), ...(cursor && { cursor }), ...(oldest && { oldest }) };
    const query = { ...(await letterFilterOf(call.redrive, filter)), ...more, payloads: isWhole };
    return letterPage(call, await call.redrive.deadLetters.list(query), isWhole);
  },
  async "letters.stats"({ redrive, query }) {
    return tallyForm(await redrive.deadLetters.stats({ ...(await letterFilterOf(redrive, query)), lookAt: LOOK_AT }));
  },
  async "letters.get"(call) {
    const letter = await call.redrive.deadLetters.get(call.params.job);
    const isWhole = withPayloads(call);
    const holding = await holdingFor(call.redrive, [letter.job]);
    await noted(call, [letter.job.id], isWhole);
    return shown(letterForm(letter, letter.history, holding), isWhole);
  },
  async "letters.export"(call) {
    const { reveal = false, ...given } = call.query;
    const filter = await letterFilterOf(call.redrive, given);
    const lines = call.redrive.deadLetters.export("ndjson", filter, { reveal });
    // The first line is read here, so that a bad filter is an error and not a stream that breaks off.
    const source = lines[Symbol.asyncIterator]();
    const first = await source.next();
    if (call.caller !== null && !first.done) await call.server.reveal(call.caller, [], call.requestId);
    return new HttpReply(streamOf(first, source), { headers: { "content-type": "application/x-ndjson" } });
  },
};

/** Lines as a stream that is read as fast as the caller takes it. */
function streamOf(first: IteratorResult<string>, source: AsyncIterator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let step: IteratorResult<string> | null = first;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      step ??= await source.next();
      if (step.done) controller.close();
      else controller.enqueue(encoder.encode(step.value));
      step = null;
    },
    cancel: async () => void (await source.return?.()),
  });
}
