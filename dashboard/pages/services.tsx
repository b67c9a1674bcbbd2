// The breakers of services: what is down since when and why, when it is tried again, and what is allowed of it.
import type { WireAnswer, WireService } from "../../src/http/client.ts";
import { Act, filled, flag } from "../act.tsx";
import { toWith } from "../address.ts";
import { Empty, Facts, Head, Meter, Part, Problem, State, Twin, Waiting, When } from "../elements.tsx";
import { decimal, number, percent, quoted } from "../format.ts";
import { useLoad } from "../live.ts";
import { outagesFrom, Plot } from "../plots.tsx";
import { api } from "../server.ts";
import { Doings } from "./events.tsx";

type Limit = WireAnswer<"limits.list">["items"][number];

/** The page. */
export function Services() {
  const { data, error, again } = useLoad(
    "services",
    (options) => api.services.list({}, options),
    ["control", "flow"],
    5_000,
  );
  const limits = useLoad("limits", (options) => api.limits.list({}, options), ["control", "flow"], 5_000);
  if (!data) return <Waiting error={error} again={again} />;
  const order = ["open", "isolated", "half_open", "closed"];
  const items = data.items.toSorted((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
  return (
    <>
      <Head title="Services" says="What jobs depend on. Where a service is down, its jobs wait instead of failing." />
      <Problem error={error} hasData again={again} />
      {items.length === 0 && (
        <Empty says="No job names a service yet. Give a job type `service: 'bank'`, and its outages stop here instead of in the dead letters." />
      )}
      {items.map((service) => (
        <Service
          key={service.service}
          of={service}
          limit={limits.data?.items.find(({ kind, name }) => kind === "service" && name === service.service) ?? null}
          again={again}
        />
      ))}
      <Outages />
      <Twin of="breakers list" />
    </>
  );
}

function Service({ of, limit, again }: { of: WireService; limit: Limit | null; again: () => void }) {
  const { service: name, state, since, until, reason, holdUntil, rampUntil, calls, failures, probes, sick } = of;
  const isClosed = state === "closed";
  return (
    <Part
      title={
        <>
          {name} <State of={state} as={isClosed ? "completed" : state === "half_open" ? "retrying" : "dead"} />
        </>
      }
      more={
        <>
          {!isClosed && (
            <Act
              label="Close"
              says={`Calls to ${name} begin again, slowly at first.`}
              command={() => `breakers close ${quoted(name)}`}
              run={(values) => api.services.close({ name, ...filled(values) }).then(again)}
            />
          )}
          {!isClosed && (
            <Act
              label="Reset"
              says={`Closes the breaker at once, and forgets what was counted of ${name}.`}
              command={() => `breakers reset ${quoted(name)}`}
              run={(values) => api.services.reset({ name, ...filled(values) }).then(again)}
            />
          )}
          {isClosed && (
            <Act
              label="Open by hand"
              kind="danger"
              says={`Nothing calls ${name} until the time is over: its jobs wait.`}
              fields={[
                { name: "reason", says: "Reason, shown in lists", needed: true },
                { name: "for", says: "For", hint: "until it is closed by hand", value: "30m" },
              ]}
              command={({ reason: said, for: time }) =>
                `breakers open ${quoted(name)}${flag("reason", said)}${flag("for", time)}`
              }
              run={(values) => api.services.open({ name, ...(filled(values) as { reason: string }) }).then(again)}
            />
          )}
        </>
      }
    >
      {reason !== null && <p class="lead">{reason}</p>}
      <Facts
        of={[
          !isClosed && ["Since", <When at={since} />],
          until !== null && ["Next probe", <When at={until} />],
          state === "half_open" && ["Probes that went well", number(probes)],
          holdUntil !== null && ["It asked to wait until", <When at={holdUntil} />],
          rampUntil !== null && ["Back to full load", <When at={rampUntil} />],
          ["Calls counted", number(calls)],
          ["Failed of them", calls === 0 ? number(failures) : `${number(failures)} (${percent(failures / calls)})`],
          limit !== null &&
            limit.budget !== null && [
              "Retry budget",
              <Meter
                share={limit.budget.tokens / limit.budget.capacity}
                says={`${decimal(limit.budget.tokens)} of ${decimal(limit.budget.capacity)} retries left`}
              />,
            ],
          limit !== null &&
            limit.rate !== null && ["Rate", `${decimal(limit.rate.left)} of ${decimal(limit.rate.limit)} left`],
          sick.length > 0 && ["Sick workers", sick.map(({ worker }) => `${worker} (only its calls fail)`).join(", ")],
          ["Waiting jobs", <a href={toWith(["jobs"], { service: name, state: "queued" })}>show ›</a>],
        ]}
      />
      <Doings subject={`service:${name}`} most={3} />
    </Part>
  );
}

function Outages() {
  const events = useLoad(
    "outages",
    (options) => api.events.list({ kind: "breaker.changed", from: "-24h", limit: 200 }, options),
    ["control"],
  );
  const flow = useLoad("overview", (options) => api.overview.get({}, options), ["flow"]);
  const outages = outagesFrom(events.data?.items ?? []);
  if (!flow.data || outages.length === 0) return null;
  const points = flow.data.flow;
  return (
    <Part title="Outages in the last hour">
      <Plot
        says={`${outages.length} outages in 24 hours`}
        height={130}
        data={{
          at: points.map(({ at }) => Date.parse(at)),
          lines: [
            { says: "completed", kind: "completed", values: points.map(({ completed }) => completed) },
            {
              says: "requeued without an attempt",
              kind: "parked",
              values: points.map(({ released }) => released),
              dash: [6, 3],
            },
          ],
          outages,
        }}
      />
    </Part>
  );
}
