// Answers the routes of services, queues, limits, schedules, workers, stuck runs, types and policies.
import { exponential, fixed, immediate, linear } from "../../core/backoff.ts";
import { coverOf, steadyChance } from "../../core/cover.ts";
import { parseDuration } from "../../core/duration.ts";
import { RedriveError } from "../../core/errors.ts";
import { loadFrom } from "../../core/load.ts";
import { invalid } from "../../core/options.ts";
import { losesNumbers } from "../../core/recovery/lost-numbers.ts";
import { type Policy, type PolicyOptions, resolvePolicy } from "../../core/policy.ts";
import type { JobDefinition } from "../../jobs/define-job.ts";
import { isoTime } from "../../operate/json-form.ts";
import type { StuckFilter } from "../../operate/stuck.ts";
import { breakerForm, limitForm, pauseForm, queueForm, scheduleForm, stuckForm } from "../../operate/view-forms.ts";
import type { ActionOptions } from "../../report/event-log.ts";
import type { ScheduleOptions } from "../../schedules/schedule-options.ts";
import { livingAmong } from "../../services/holding.ts";
import type { RunScheduleOptions } from "../../schedules/schedules.ts";
import { fieldText } from "../body.ts";
import type { Call, Handlers } from "../call.ts";
import type { RouteName } from "../routes.ts";

type Kinds = "services" | "queues" | "pauses" | "limits" | "schedules" | "workers" | "stuck" | "types" | "policies";

/** The handlers. */
export const FLEET_HANDLERS: Handlers<Extract<RouteName, `${Kinds}.${string}`>> = {
  "services.list": async ({ redrive }) => ({ items: (await redrive.breakers.list()).map(breakerForm) }),
  "services.get": async ({ redrive, params }) => breakerForm(await redrive.breakers.get(params.name)),
  "services.open": async ({ as, params, body }) =>
    breakerForm(await as.breakers.open(params.name, body as { reason: string })),
  "services.close": async ({ as, params, body }) =>
    breakerForm(await as.breakers.close(params.name, body as ActionOptions)),
  "services.reset": async ({ as, params, body }) =>
    breakerForm(await as.breakers.reset(params.name, body as ActionOptions)),
  async "queues.list"({ redrive }) {
    const [queues, pauses] = await Promise.all([redrive.queues(), redrive.pauses()]);
    return { items: queues.map(queueForm), pauses: pauses.map(pauseForm) };
  },
  async "pauses.set"({ redrive, as, params, body }) {
    await as.pause(params, body as ActionOptions);
    const found = (await redrive.pauses()).find(({ kind, name }) => kind === params.kind && name === params.name);
    return { ...params, paused: found !== undefined, until: isoTime(found?.until ?? null) };
  },
  "pauses.end": async ({ as, params, query }) => ({
    ...params,
    resumed: await as.resume(params, query as ActionOptions),
  }),
  "limits.list": async ({ redrive }) => ({ items: (await redrive.limits()).map(limitForm) }),
  async "schedules.list"({ redrive, caller }) {
    const items = (await redrive.schedules.list()).map(scheduleForm);
    return { items: items.map((form) => withoutInput(form, caller)) };
  },
  async "schedules.set"({ as, params, body, caller, text }) {
    const { why, ...options } = body;
    if (losesNumbers(fieldText(text, "input") ?? "null"))
      throw new RedriveError(
        "invalid_payload",
        "input: expected numbers up to 2^53; got a larger one; send it as text",
      );
    const because = why === undefined ? {} : { why };
    return withoutInput(scheduleForm(await as.schedules.set(params.name, options as ScheduleOptions, because)), caller);
  },
  "schedules.remove": async ({ as, params, query }) => ({
    name: params.name,
    removed: await as.schedules.remove(params.name, query as ActionOptions),
  }),
  async "schedules.run"({ as, params, body, request }) {
    const key = request.headers.get("idempotency-key");
    const options = { ...(key !== null && { id: key }), ...body } as RunScheduleOptions;
    return { name: params.name, ...(await as.schedules.run(params.name, options)) };
  },
  "schedules.pause": async ({ as, params, body, caller }) =>
    withoutInput(scheduleForm(await as.schedules.pause(params.name, body as ActionOptions)), caller),
  "schedules.resume": async ({ as, params, body, caller }) =>
    withoutInput(scheduleForm(await as.schedules.resume(params.name, body as ActionOptions)), caller),
  async "workers.list"({ redrive: { store } }) {
    const [workers, { cells, now }] = await Promise.all([store.workers(), store.cells([{ kind: "load" }])]);
    const alive = new Set(livingAmong(workers, now).map(({ id }) => id));
    const loads = new Map(cells.map(({ holder, value }) => [holder, loadFrom(value)]));
    return {
      items: workers.map(({ id, host, pid, release, startedAt, beatAt, leaseEnd, givenUp, running }) => {
        const load = loads.get(id) ?? null;
        return {
          id,
          host,
          pid,
          release,
          startedAt: isoTime(startedAt),
          beatAt: isoTime(beatAt),
          leaseEnd: isoTime(leaseEnd),
          alive: alive.has(id),
          givenUp,
          running,
          slots: load?.concurrency ?? null,
          queues: load?.queues ?? null,
          types: load?.types.map(({ type }) => type) ?? [],
        };
      }),
    };
  },
  "stuck.list": async ({ redrive, query }) => ({
    items: (await redrive.stuck.list(query as StuckFilter)).map(stuckForm),
  }),
  async "stuck.fix"({ as, body }) {
    const runs = await as.stuck.fix(body as StuckFilter);
    return { dryRun: body.dryRun ?? false, fixed: runs.filter((run) => run.fixed).length, items: runs.map(stuckForm) };
  },
  "types.list": async ({ redrive }) => ({ items: redrive.types.map(typeForm) }),
  async "types.policy"({ redrive, params: { type } }) {
    const found = redrive.types.find((definition) => definition.type === type);
    const { policy } = found ?? resolvePolicy({});
    return { type, known: found !== undefined, policy: policyForm(policy), preview: previewOf(policy) };
  },
  "policies.preview": async ({ body }) => previewOf(resolvePolicy({ job: policyFrom(body) }).policy),
};

/** The input of a schedule is a payload. */
function withoutInput(form: object, caller: Call["caller"]): object {
  if (caller?.payloads) return form;
  const { input: _, ...rest } = form as { input?: unknown };
  return rest;
}

interface JsonSchemaMaker {
  readonly jsonSchema?: { readonly input?: (options: { readonly target: string }) => unknown };
}

function typeForm({ type, queue, service, version, input }: JobDefinition): object {
  const maker = input?.["~standard"] as JsonSchemaMaker | undefined;
  let schema: unknown = null;
  try {
    schema = maker?.jsonSchema?.input?.({ target: "draft-2020-12" }) ?? null;
  } catch {
    // A schema that JSON Schema cannot say.
  }
  return { type, queue, service, version, input: schema };
}

function policyForm({ backoff, ...policy }: Policy): object {
  return { ...policy, backoff: backoff.kind === "custom" ? { kind: "custom" } : backoff };
}

function previewOf(policy: Policy): object {
  const { delays, cover } = coverOf(policy, steadyChance());
  const { maxAttempts, deadlineMs, backoff } = policy;
  return { attempts: maxAttempts, delays, deadlineMs, cover, custom: backoff.kind === "custom" };
}

function policyFrom({ backoff, ...policy }: Call<"policies.preview">["body"]): PolicyOptions {
  if (backoff === undefined) return policy as PolicyOptions;
  const { kind, ...options } = backoff;
  if (kind !== "exponential" && options.multiplier !== undefined)
    throw invalid("backoff.multiplier", "kind exponential", kind, "leave it out");
  if (kind !== "linear" && options.factor !== undefined)
    throw invalid("backoff.factor", "kind linear", kind, "leave it out");
  return { ...policy, backoff: backoffFrom(kind, options as object) } as PolicyOptions;
}

function backoffFrom(kind: "exponential" | "linear" | "fixed" | "immediate", options: object) {
  if (kind === "immediate") return immediate();
  if (kind === "exponential") return exponential(options);
  if (kind === "linear") return linear(options);
  const { initial, jitter } = options as { initial?: string | number; jitter?: "full" };
  if (initial === undefined)
    throw new RedriveError(
      "invalid_argument",
      'backoff.initial: expected a duration for kind fixed; got none; add it, such as "5s"',
    );
  return fixed(parseDuration(initial, "backoff.initial"), jitter === undefined ? {} : { jitter });
}
