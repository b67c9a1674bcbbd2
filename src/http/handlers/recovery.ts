// Answers the routes of causes, plans, redrive runs and repairs.
import { createHash } from "node:crypto";
import { RedriveError } from "../../core/errors.ts";
import { parseDuration } from "../../core/duration.ts";
import { HOUR, MINUTE } from "../../core/flow.ts";
import { invalid } from "../../core/options.ts";
import type { RedrivePlan } from "../../core/recovery/plan.ts";
import { runIdOf } from "../../core/recovery/run-id.ts";
import { causeForm, type CauseView } from "../../operate/causes.ts";
import { causeTrend } from "../../operate/cause-trend.ts";
import { isoTime } from "../../operate/json-form.ts";
import { triageCauses } from "../../operate/triage.ts";
import { pageForm, planForm, triageForm, wholeRunForm } from "../../operate/view-forms.ts";
import type { RedriveStartOptions } from "../../operate/redrive-selection.ts";
import type { Redrive } from "../../redrive-api.ts";
import type { ActionOptions } from "../../report/event-log.ts";
import type { Call, Handlers } from "../call.ts";
import { instantFrom } from "../input.ts";
import type { RouteName } from "../routes.ts";
import { changedMeanwhile, letterFilterOf, letterPage } from "./letters.ts";

/** What people said of a cause, as a short text that changes with it. */
function revisionOf({ state, since, by, until, fixedIn, note, owner }: CauseView): string {
  const said = JSON.stringify([state, since, by, until, fixedIn, note, owner]);
  return createHash("sha256").update(said).digest("hex").slice(0, 16);
}

/** A cause as a document. */
export function causeDocument(view: CauseView): object {
  return { ...causeForm(view), revision: revisionOf(view) };
}

/** A plan as a document. */
function planDocument(plan: RedrivePlan): object {
  return { ...planForm(plan), started: plan.started, run: runIdOf(plan.id) };
}

/** The plan that a run of this id is started from. */
function planIdOf(run: string): string {
  const plan = run.replace(/^r_/, "p_");
  if (runIdOf(plan) === run) return plan;
  throw invalid("id", "the `run` of a plan", run, "make a plan with POST /plans");
}

async function spanOf(
  { store }: Redrive,
  { from, until, step }: Call<"causes.trend">["query"],
): Promise<{ readonly from: number; readonly until: number; readonly stepMs: number }> {
  const { now } = await store.control();
  const end = until === undefined ? now + 1 : instantFrom(until, "until", now);
  const begin = from === undefined ? Math.max(0, end - 24 * HOUR) : instantFrom(from, "from", now);
  const stepMs = step === undefined ? 10 * MINUTE : parseDuration(step, "step", { minMs: MINUTE, maxMs: 24 * HOUR });
  if (stepMs % MINUTE !== 0) throw invalid("step", "whole minutes", step, 'for example "10m"');
  if (end <= begin) throw invalid("from", "a time before `until`", from, "swap them");
  if ((end - begin) / stepMs > 2_000) throw invalid("step", "at most 2,000 steps", step, "choose a longer one");
  return { from: begin, until: end, stepMs };
}

/** The handlers. */
export const RECOVERY_HANDLERS: Handlers<
  Extract<RouteName, `causes.${string}` | `plans.${string}` | `redrives.${string}` | `repairs.${string}`>
> = {
  async "causes.list"({ redrive, query }) {
    const page = await redrive.causes.list(query as Parameters<Redrive["causes"]["list"]>[0]);
    return { items: page.items.map(causeDocument), ...pageForm(page) };
  },
  async "causes.get"({ redrive, params: { fingerprint } }) {
    const cause = await redrive.causes.get(fingerprint);
    const { store, causes, breakers } = redrive;
    const [advice] = cause.dead === 0 ? [] : await triageCauses({ store, causes, breakers }, { fingerprint });
    const triage = advice ? { advice: advice.advice, reason: advice.reason } : null;
    const { letters, ...view } = cause;
    return { ...causeDocument(view), letters, triage };
  },
  async "causes.letters"(call) {
    const { limit, cursor, payloads } = call.query;
    const isWhole = call.caller?.payloads === true && payloads !== false;
    const more = { ...(limit && { limit }), ...(cursor && { cursor }) };
    const { fingerprint } = call.params;
    return letterPage(call, await call.redrive.deadLetters.list({ fingerprint, ...more, payloads: isWhole }), isWhole);
  },
  async "causes.trend"({ redrive, params: { fingerprint }, query }) {
    const span = await spanOf(redrive, query);
    const steps = await causeTrend(redrive.store, { ...span, fingerprint });
    return { items: steps.map((step) => ({ ...step, at: isoTime(step.at) })) };
  },
  async "causes.triage"({ redrive: { store, causes, breakers }, query }) {
    const found = await triageCauses({ store, causes, breakers }, { limit: query.limit ?? 20 });
    return { items: found.map(triageForm) };
  },
  async "causes.change"(call) {
    const { fingerprint } = call.params;
    const match = call.request.headers.get("if-match");
    if (match !== null && match !== `"${revisionOf(await call.redrive.causes.get(fingerprint))}"`)
      throw changedMeanwhile("cause");
    return causeDocument(await changeCause(call));
  },
  async "plans.make"({ as, redrive, body: { selection, ...options } }) {
    const { from, until, ...rest } = selection;
    const { now } = await redrive.store.control();
    const times = {
      ...(from !== undefined && { from: instantFrom(from, "selection.from", now) }),
      ...(until !== undefined && { until: instantFrom(until, "selection.until", now) }),
    };
    const asked = { ...rest, ...times } as Parameters<Redrive["redrives"]["plan"]>[0];
    return planDocument(await as.redrives.plan(asked, options as Parameters<Redrive["redrives"]["plan"]>[1]));
  },
  "plans.get": async ({ redrive, params }) => planDocument(await redrive.redrives.getPlan(params.id)),
  async "redrives.start"({ redrive, as, params: { id }, body }) {
    const plan = await redrive.redrives.getPlan(planIdOf(id));
    // Sent twice, as after an answer that was lost, it is still one start.
    if (plan.started === id) return wholeRunForm(await redrive.redrives.get(id));
    return wholeRunForm(await as.redrives.start(plan.id, body as RedriveStartOptions));
  },
  async "redrives.list"({ redrive, query }) {
    const page = await redrive.redrives.list(query as Parameters<Redrive["redrives"]["list"]>[0]);
    return { items: page.items.map(wholeRunForm), ...pageForm(page) };
  },
  "redrives.get": async ({ redrive, params }) => wholeRunForm(await redrive.redrives.get(params.id)),
  "redrives.pause": async ({ as, params, body }) =>
    wholeRunForm(await as.redrives.pause(params.id, body as ActionOptions)),
  "redrives.resume": async ({ as, params, body }) =>
    wholeRunForm(await as.redrives.resume(params.id, body as ActionOptions)),
  "redrives.cancel": async ({ as, params, body }) =>
    wholeRunForm(await as.redrives.cancel(params.id, body as ActionOptions)),
  "redrives.recall": async ({ as, params, body }) =>
    wholeRunForm(await as.redrives.recall(params.id, body as ActionOptions)),
  "repairs.preview": async ({ redrive, body: { target, patch } }) =>
    redrive.deadLetters.preview(await targetOf(redrive, target), patch),
  "repairs.make": async ({ redrive, as, body: { target, patch, ...options } }) =>
    as.deadLetters.repair(await targetOf(redrive, target), patch, options as { why?: string }),
};

async function targetOf(redrive: Redrive, target: Call<"repairs.make">["body"]["target"]) {
  return "ids" in target ? target.ids : letterFilterOf(redrive, target.filter);
}

/** Carries out what the body says, the state first. */
async function changeCause({ as, params: { fingerprint }, body }: Call<"causes.change">): Promise<CauseView> {
  const { state, for: span, more, in: release, note, owner, why } = body;
  const because = why === undefined ? {} : { why };
  let view: CauseView | null = null;
  if (state !== "muted" && (span !== undefined || more !== undefined))
    throw invalid("body", "for and more only with state muted", state ?? "none", "leave them out");
  if (state !== "fixed" && release !== undefined)
    throw invalid("body", "in only with state fixed", state ?? "none", "leave it out");
  if (state === "muted") {
    const end = { ...(span !== undefined && { for: span }), ...(more !== undefined && { more }) };
    view = await as.causes.mute(fingerprint, { ...end, ...because });
  } else if (state === "fixed") {
    view = await as.causes.fix(fingerprint, { ...(release !== undefined && { in: release }), ...because });
  } else if (state === "open") {
    const { state: now } = await as.causes.get(fingerprint);
    view = await as.causes[now === "muted" ? "unmute" : "reopen"](fingerprint, because);
  }
  if (note !== undefined) view = await as.causes.note(fingerprint, note, because);
  if (owner !== undefined) view = await as.causes.own(fingerprint, owner, because);
  if (view) return view;
  throw new RedriveError("invalid_argument", "body: expected state, note or owner; got none; say what changes");
}
