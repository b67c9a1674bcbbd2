// What is happening, and what needs a person: health with reasons, the list of what to look at, the last hour, the fleet.
import type { WireEvent, WireOverview } from "../../src/http/client.ts";
import { to, toWith } from "../address.ts";
import { Empty, Facts, Head, Part, Problem, Spark, State, Twin, Waiting, When } from "../elements.tsx";
import { bounded, counted, decimal, line, number, span } from "../format.ts";
import { useLoad } from "../live.ts";
import { FlowPlot } from "../plots.tsx";
import { api } from "../server.ts";
import { EventText, subjectLink } from "./events.tsx";

/** The first page. */
export function Overview() {
  const { data, error, again } = useLoad("overview", (options) => api.overview.get({}, options), [
    "jobs",
    "causes",
    "redrives",
    "control",
    "workers",
    "flow",
    "events",
  ]);
  const events = useLoad("overview events", (options) => api.events.list({ limit: 30 }, options), ["events"]);
  if (!data) return <Waiting error={error} again={again} />;
  return (
    <>
      <Head
        title={
          <>
            <State of={data.health.status} /> <small class="num">{decimal(data.health.score)}</small>
          </>
        }
        says={data.health.reasons.length === 0 ? "Nothing holds work back, and little fails." : undefined}
      />
      <Problem error={error} hasData again={again} />
      <Attention of={data} />
      <Counts of={data} />
      <Part title="Last 60 minutes" more={<small class="dim">completed, failed and dead jobs per minute</small>}>
        <FlowPlot overview={data} events={events.data?.items ?? []} />
      </Part>
      <div class="columns">
        <TopCauses of={data} />
        <Fleet of={data} />
      </div>
      <Lately events={events.data?.items ?? []} />
      <Twin of="health" />
    </>
  );
}

function Attention({ of: { attention, runs } }: { of: WireOverview }) {
  const open = runs.filter(({ state }) => state === "running");
  if (attention.length === 0 && open.length === 0) return null;
  return (
    <Part title="Needs attention" class="attention">
      <ul>
        {attention.map(({ kind, text, subject }, at) => {
          const link = subjectLink(subject);
          const word = kind === "health" ? "" : kind.replaceAll("_", " ");
          return (
            <li key={at}>
              {word !== "" && <State of={kind.replace("redrive_", "")} says={word} as="dead" />}{" "}
              {link === null ? line(text, 200) : <a href={link}>{line(text, 200)}</a>}
            </li>
          );
        })}
        {open.map(({ id, toSend, sent, by }) => (
          <li key={id}>
            <State of="running" says="redrive running" />{" "}
            <a href={to("redrives", id)}>
              {number(sent)} of {number(toSend)} sent, started by {by}
            </a>
          </li>
        ))}
      </ul>
    </Part>
  );
}

function Counts({ of: { jobs, oldestDueMs } }: { of: WireOverview }) {
  const tiles = [
    ["queued", bounded(jobs.queued), toWith(["jobs"], { state: "queued" })],
    ["running", bounded(jobs.running), toWith(["jobs"], { state: "running" })],
    ["completed", bounded(jobs.completed), toWith(["jobs"], { state: "completed" })],
    ["dead", bounded(jobs.dead), "#/dead-letters"],
    ["cancelled", bounded(jobs.cancelled), toWith(["jobs"], { state: "cancelled" })],
  ] as const;
  return (
    <div class="tiles">
      {tiles.map(([state, n, link]) => (
        <a key={state} href={link} class={`tile is-${state}`}>
          <b>{n}</b> <State of={state} />
        </a>
      ))}
      <a class="tile" href={toWith(["jobs"], { state: "queued", due: true, sort: "due" })}>
        <b>{oldestDueMs === null ? "–" : span(oldestDueMs)}</b> oldest due job
      </a>
    </div>
  );
}

function TopCauses({ of: { causes } }: { of: WireOverview }) {
  return (
    <Part title="Causes" more={<a href="#/causes">all causes ›</a>}>
      {causes.length === 0 ? (
        <Empty says="No job is dead, and nothing fails." command="redrive demo --keep" />
      ) : (
        <ul class="rows">
          {causes.map(({ fingerprint, sample, dead, state, trend, lastSeen }) => (
            <li key={fingerprint} data-row={fingerprint} tabIndex={-1}>
              <Spark of={trend} says={`${counted(dead, "dead letter")}, last 24 hours`} />
              <a href={to("causes", fingerprint)}>{line(`${sample.name}: ${sample.message}`, 90)}</a>
              <span class="dim">
                {number(dead)} dead{state !== "open" && ", "}
                {state !== "open" && <State of={state} />} · <When at={lastSeen} short />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Part>
  );
}

function Fleet({ of: { services, workers, pauses } }: { of: WireOverview }) {
  const releases = Object.entries(workers.releases);
  const broken = services.map(({ service, state, since }) => (
    <div key={service}>
      <a href="#/services">{service}</a> <State of={state} as={state === "half_open" ? "retrying" : "dead"} />{" "}
      <When at={since} short />
    </div>
  ));
  const paused = pauses.map(({ kind, name, reason, until }) => (
    <div key={`${kind} ${name}`}>
      <State of="paused" says={`${kind} ${name}`} /> {line(reason, 60)} {until && <When at={until} short />}
    </div>
  ));
  return (
    <Part title="Fleet" more={<a href="#/workers">workers ›</a>}>
      <Facts
        of={[
          [
            "Workers",
            <>
              <a href="#/workers">{number(workers.alive)} alive</a>
              {workers.givenUp > 0 && <span class="bad">, {number(workers.givenUp)} given up</span>}
            </>,
          ],
          [
            "Releases",
            releases.length === 0
              ? "no worker has named one"
              : releases.map(([release, n]) => `${release || "without a name"} ×${n}`).join(", "),
          ],
          ["Services", broken.length === 0 ? "all breakers are closed" : broken],
          ["Paused", paused.length === 0 ? "nothing" : paused],
        ]}
      />
    </Part>
  );
}

function Lately({ events }: { events: readonly WireEvent[] }) {
  const shown = events.filter(({ intent }) => intent === null).slice(0, 8);
  return (
    <Part title="Lately" more={<a href="#/events">all events ›</a>}>
      {shown.length === 0 ? (
        <Empty says="Nothing yet. What people do and what workers notice stands here." />
      ) : (
        <ul class="lines">
          {shown.map((event) => (
            <li key={event.seq}>
              <When at={event.at} /> <EventText event={event} />
            </li>
          ))}
        </ul>
      )}
    </Part>
  );
}
