// Answers the routes of the server itself: sessions, events, health, metrics and the document of the API.
import { fieldsFrom } from "../../core/options.ts";
import { VERSION } from "../../core/version.ts";
import { formatFor, MEDIA_TYPES } from "../../metrics/text.ts";
import type { EventFilter } from "../../operate/event-log.ts";
import { isoTime } from "../../operate/json-form.ts";
import { eventForm, healthForm, pageForm } from "../../operate/view-forms.ts";
import type { LoggedEvent } from "../../store/store.ts";
import { type Call, type Handlers, HttpReply } from "../call.ts";
import { HttpError } from "../http-error.ts";
import { type Caller, callerFrom } from "../identity.ts";
import { instantFrom } from "../input.ts";
import type { RouteName } from "../routes.ts";
import { readOverview } from "./overview.ts";

type Kinds = "session" | "overview" | "events" | "health" | "metrics" | "openapi";

/** The handlers. */
export const SERVER_HANDLERS: Handlers<Extract<RouteName, `${Kinds}.${string}`>> = {
  "session.get": async (call) => sessionForm(call, call.caller),
  async "session.start"(call) {
    const { access } = call.server;
    if (access === null)
      throw new HttpError("not_found", "This server has no sign-in of its own: the application says who calls.");
    const signed = await access.signIn(call.body, call.peer);
    if (signed === null)
      throw new HttpError("unauthenticated", "The code or token is wrong, was used, or has expired.");
    const form = await sessionForm(call, callerFrom(signed.identity));
    return new HttpReply(form, { status: 201, headers: { "set-cookie": signed.cookie } });
  },
  async "session.end"({ server: { access }, request }) {
    if (access === null)
      throw new HttpError("not_found", "This server has no sign-in of its own: the application says who calls.");
    return new HttpReply({ ended: true }, { headers: { "set-cookie": await access.signOut(request) } });
  },
  "overview.get": ({ redrive }) => readOverview(redrive),
  async "events.list"({ redrive, caller, query }) {
    // Nor may a filter say what the rows do not.
    const isAudit = query.actor !== undefined || /^(?:job|token):/.test(query.subject ?? "");
    if (isAudit && caller?.audit !== true)
      throw new HttpError(
        "forbidden",
        "Asking what a person did, or what was done to a job, needs the right to audit.",
        {
          details: { missing: "audit" },
        },
      );
    const { after, from, until, cursor, ...rest } = query;
    const { now } = from === undefined && until === undefined ? { now: 0 } : await redrive.store.control();
    const page = await redrive.events({
      ...(rest as EventFilter),
      ...(cursor !== undefined && { cursor }),
      ...(after !== undefined && { cursor: cursor ?? String(after), oldest: true }),
      ...(from !== undefined && { from: instantFrom(from, "from", now) }),
      ...(until !== undefined && { until: instantFrom(until, "until", now) }),
    });
    return { items: page.items.map(rowForm(caller)), ...pageForm(page) };
  },
  async "events.stream"({ server, request, query, caller }) {
    const said = request.headers.get("last-event-id");
    const after = said !== null && /^\d{1,15}$/.test(said) ? Number(said) : (query.after ?? null);
    const stream = await server.streams.open(after, rowForm(caller), request.signal);
    const headers = { "content-type": "text/event-stream", "x-accel-buffering": "no" };
    return new HttpReply(stream, { headers });
  },
  "health.get": async ({ redrive, query }) =>
    healthForm(await redrive.health(query.type === undefined ? {} : { type: query.type })),
  async "metrics.get"({ redrive, request }) {
    const format = formatFor(request.headers.get("accept") ?? undefined);
    const metrics = await redrive.metrics();
    return new HttpReply(metrics.text(format), { headers: { "content-type": MEDIA_TYPES[format] } });
  },
  "openapi.get": async () => (await import("../openapi.ts")).openApi(),
};

async function sessionForm(
  { redrive, server }: Pick<Call, "redrive" | "server">,
  caller: Caller | null,
): Promise<object> {
  const nothing = { actor: null, role: null, payloads: false, audit: false, expiresAt: null };
  // Without a token nothing is told of the store, not even that it answers.
  if (caller === null) return { ...nothing, store: null, version: null, now: null, capabilities: server.capabilities };
  const { name, shown } = redrive.store.describe();
  const { now } = await redrive.store.control();
  return {
    ...caller,
    expiresAt: isoTime(caller.expiresAt),
    store: { name, shown },
    version: VERSION,
    now: isoTime(now),
    capabilities: server.capabilities,
  };
}

/** A row as this caller may see it: who did it and why, and to which jobs, only with the right to audit. */
export function rowForm(caller: Caller | null): (event: LoggedEvent) => object {
  if (caller?.audit) return eventForm;
  return (event) => {
    if (event.actor === null) return eventForm(event);
    const { step } = fieldsFrom(event.value);
    const { actor: _actor, why: _why, ...rest } = eventForm(event) as Record<string, unknown>;
    // The subject of a row about a token is the name of a person.
    const isHidden = /^(?:job|token):/.test(event.subject ?? "");
    return { ...rest, subject: isHidden ? null : event.subject, value: step === undefined ? {} : { step } };
  };
}
