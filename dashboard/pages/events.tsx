// What people did and what workers noticed: the event log, with filters in the address.
import { useEffect, useState } from "preact/hooks";
import type { WireEvent } from "../../src/http/client.ts";
import { address, to, toWith } from "../address.ts";
import { Empty, Head, Part, Problem, State, Twin, Waiting, When } from "../elements.tsx";
import { Filters } from "../filters.tsx";
import { line, number, quoted, shortId } from "../format.ts";
import { useLoad } from "../live.ts";
import { More, usePages } from "../paging.tsx";
import { api, session } from "../server.ts";
import { Table } from "../table.tsx";

/** Where the subject of an event or of a reason leads; null where it has no page. */
export function subjectLink(subject: string | null): string | null {
  if (subject === null) return null;
  const [kind = "", ...rest] = subject.split(":");
  const name = rest.join(":");
  if (kind === "cause") return to("causes", name);
  if (kind === "redrive") return to("redrives", name);
  if (kind === "job") return to("jobs", name);
  if (kind === "service") return "#/services";
  if (kind === "worker" || kind === "release") return "#/workers";
  if (kind === "schedule") return "#/schedules";
  if (kind === "queue" || kind === "tenant") return "#/queues";
  if (kind === "type") return toWith(["jobs"], { type: name });
  return null;
}

const UNSAID = ["step", "request", "driver", "id"];

/** How far an action of a person came; null for what workers noticed. */
const stepOf = ({ value, actor }: WireEvent): string | null => {
  const { step } = (value ?? {}) as { step?: unknown };
  return typeof step !== "string" ? null : step === "intent" && actor ? "unknown" : step;
};

function detailsOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return "";
  const parts = Object.entries(value)
    .filter(([name, said]) => !UNSAID.includes(name) && said !== null && said !== "" && said !== 0)
    .map(([name, said]) => `${name} ${typeof said === "string" ? said : JSON.stringify(said)}`);
  return line(parts.join(", "), 160);
}

/** An event in one line. */
export function EventText({ event }: { event: WireEvent }) {
  const { kind, actor, why, subject, value } = event;
  const link = subjectLink(subject);
  const step = stepOf(event);
  const [of = "", ...name] = (subject ?? "").split(":");
  const shown = of === "job" ? shortId(name.join(":")) : name.join(":");
  return (
    <>
      {actor && <b>{actor} </b>}
      <span class="kind">{kind}</span> {subject && (link ? <a href={link}>{`${of} ${shown}`}</a> : subject)}{" "}
      {why && <q>{why}</q>} {step === "failed" && <State of="failed" as="dead" />}{" "}
      <small class="dim">{detailsOf(value)}</small>
    </>
  );
}

/** What was done to one thing, and by whom: stands beside it. */
export function Doings({ subject, most = 5, title }: { subject: string; most?: number; title?: string }) {
  const { data } = useLoad(`doings ${subject}`, (options) => api.events.list({ subject, limit: 20 }, options), [
    "events",
  ]);
  const [shown, setShown] = useState<readonly WireEvent[]>([]);
  useEffect(() => {
    if (data) setShown(outcomes(data.items).slice(0, most));
  }, [data]);
  if (shown.length === 0) return null;
  const rows = (
    <ul class="lines">
      {shown.map((event) => (
        <li key={event.seq}>
          <When at={event.at} /> <EventText event={event} />
        </li>
      ))}
    </ul>
  );
  return title === undefined ? rows : <Part title={title}>{rows}</Part>;
}

/** Without intents whose outcome is there too. */
export function outcomes(items: readonly WireEvent[]): readonly WireEvent[] {
  const ended = new Set(items.map(({ intent }) => intent));
  return items.filter(({ seq }) => !ended.has(seq));
}

const FIELDS = [
  { name: "kind", says: "what", hint: "pause" },
  { name: "actor", says: "who", hint: "ada" },
  { name: "subject", says: "about", hint: "queue:mail" },
  { name: "from", says: "from", hint: "-2h" },
  { name: "until", says: "until", hint: "-1h" },
] as const;

/** The page. */
export function Events() {
  const { query } = address.value;
  const asked = Object.fromEntries(
    FIELDS.flatMap(({ name }) => (query.get(name) ? [[name, query.get(name) as string]] : [])),
  );
  const { first, rest, more, error, again, next } = usePages(
    `events ${JSON.stringify(asked)}`,
    (cursor, options) => api.events.list({ ...asked, limit: 100, ...(cursor && { cursor }) }, options),
    ["events"],
  );
  const items = [...(first ?? []), ...rest];
  const isAudit = session.value?.audit === true;
  return (
    <>
      <Head title="Events" says="What people did and why, and what workers noticed. Rows are never changed.">
        {first && (
          <a
            class="button"
            download="redrive-events.ndjson"
            href={URL.createObjectURL(new Blob([items.map((event) => JSON.stringify(event)).join("\n")]))}
          >
            save these {number(items.length)} as NDJSON
          </a>
        )}
      </Head>
      <Filters fields={isAudit ? FIELDS : FIELDS.filter(({ name }) => name !== "actor")} />
      {!isAudit && <p class="dim">Who did what is shown to people with the right to audit.</p>}
      <Problem error={first ? error : null} hasData again={again} />
      {!first ? (
        <Waiting error={error} again={again} />
      ) : items.length === 0 ? (
        <Empty says="No such event. Clear the filters, or look at another time." />
      ) : (
        <Table
          rows={outcomes(items)}
          id={({ seq }) => String(seq)}
          says="Events, newest first"
          columns={[
            { head: "When", cell: ({ at }) => <When at={at} /> },
            { head: "Who", cell: ({ actor }) => actor ?? <span class="dim">–</span> },
            {
              head: "What and about what",
              kind: "main",
              cell: (event) => <EventText event={{ ...event, actor: null }} />,
            },
            {
              head: "Result",
              cell: (event) => stepOf(event) ?? "",
            },
          ]}
        />
      )}
      <More next={next} more={more} />
      <Twin
        of={`events${Object.entries(asked)
          .map(([name, value]) =>
            name === "kind"
              ? ` --kind ${quoted(value)}`
              : name === "from"
                ? ` --since ${quoted(value.replace(/^-/, ""))}`
                : "",
          )
          .join("")}`}
      />
    </>
  );
}
