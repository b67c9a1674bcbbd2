// Queues, what is paused and by whom, and the limits of the fleet with what is left of each.
import type { WireAnswer, WireInput, WirePause } from "../../src/http/client.ts";
import { Act, filled, flag } from "../act.tsx";
import { toWith } from "../address.ts";
import { Empty, Head, Meter, Part, Problem, State, Twin, Waiting, When } from "../elements.tsx";
import { decimal, quoted, span } from "../format.ts";
import { useLoad } from "../live.ts";
import { api } from "../server.ts";
import { Table } from "../table.tsx";
import { Doings } from "./events.tsx";

type Kind = WirePause["kind"];
type Limit = WireAnswer<"limits.list">["items"][number];

const flagOf = (kind: Kind, name: string): string => (kind === "queue" ? quoted(name) : `--${kind} ${quoted(name)}`);

function PauseButton({ kind, name, again }: { kind: Kind; name: string; again: () => void }) {
  return (
    <Act
      label="Pause"
      says={`No worker takes jobs of the ${kind} ${name} until it is resumed. Running jobs go on.`}
      noWhy
      fields={[
        { name: "for", says: "For", hint: "until it is resumed" },
        { name: "reason", says: "Why, shown to everyone" },
      ]}
      command={({ for: time, reason }) =>
        `queues pause ${flagOf(kind, name)}${flag("for", time)}${flag("reason", reason)}${flag("why", reason)}`
      }
      run={(values) => {
        const { reason, ...rest } = filled(values);
        return api.pauses
          .set({ kind, name, ...rest, ...(reason && { reason, why: reason }) } as WireInput<"pauses.set">)
          .then(again);
      }}
    />
  );
}

function ResumeButton({ kind, name, again }: { kind: Kind; name: string; again: () => void }) {
  return (
    <Act
      label="Resume"
      kind="main"
      says={`Workers take jobs of the ${kind} ${name} again.`}
      command={() => `queues resume ${flagOf(kind, name)}`}
      run={(values) => api.pauses.end({ kind, name, ...filled(values) }).then(again)}
    />
  );
}

/** The page. */
export function Queues() {
  const { data, error, again } = useLoad("queues", (options) => api.queues.list({}, options), ["control", "workers"]);
  const limits = useLoad("limits", (options) => api.limits.list({}, options), ["control", "flow"], 5_000);
  if (!data) return <Waiting error={error} again={again} />;
  const others = data.pauses.filter(({ kind }) => kind !== "queue");
  return (
    <>
      <Head title="Queues & limits" says="What may run, how much of it at a time, and what people hold back.">
        <Act
          label="Pause a type, service or tenant"
          says="No worker takes such jobs until it is resumed. Running jobs go on."
          noWhy
          fields={[
            { name: "kind", says: "type, service or tenant", value: "tenant", needed: true },
            { name: "name", says: "Name", needed: true },
            { name: "for", says: "For", hint: "until it is resumed" },
            { name: "reason", says: "Why, shown to everyone" },
          ]}
          command={({ kind = "", name = "", for: time, reason }) =>
            `queues pause --${kind} ${quoted(name)}${flag("for", time)}${flag("reason", reason)}`
          }
          run={(values) => {
            const { reason, ...rest } = filled(values);
            return api.pauses
              .set({ ...rest, ...(reason && { reason, why: reason }) } as WireInput<"pauses.set">)
              .then(again);
          }}
        />
      </Head>
      <Problem error={error} hasData again={again} />
      {data.items.length === 0 ? (
        <Empty
          says="No queue is known yet. The first worker or job makes one."
          command="redrive worker --jobs jobs.ts"
        />
      ) : (
        <Table
          rows={data.items}
          id={({ name }) => name}
          says="Queues"
          columns={[
            {
              head: "Queue",
              cell: ({ name }) => <a href={toWith(["jobs"], { queue: name, state: "queued" })}>{name}</a>,
            },
            {
              head: "State",
              kind: "main",
              cell: ({ name, paused }) =>
                paused ? (
                  <>
                    <State of="paused" /> {paused.reason} {paused.until && <When at={paused.until} />}
                    <Doings subject={`queue:${name}`} most={1} />
                  </>
                ) : (
                  <State of="running" says="open" as="completed" />
                ),
            },
            { head: "Types", kind: "wide", cell: ({ types }) => types.join(", ") },
            {
              head: "Actions",
              kind: "acts",
              cell: ({ name, paused }) =>
                paused ? (
                  <ResumeButton kind="queue" name={name} again={again} />
                ) : (
                  <PauseButton kind="queue" name={name} again={again} />
                ),
            },
          ]}
        />
      )}
      {others.length > 0 && (
        <Part title="Also paused">
          <Table
            rows={others}
            id={({ kind, name }) => `${kind}:${name}`}
            says="Pauses"
            columns={[
              { head: "What", cell: ({ kind, name }) => <State of="paused" says={`${kind} ${name}`} /> },
              {
                head: "Why",
                kind: "main",
                cell: ({ kind, name, reason }) => (
                  <>
                    {reason} <Doings subject={`${kind}:${name}`} most={1} />
                  </>
                ),
              },
              { head: "Since", cell: ({ since }) => <When at={since} /> },
              { head: "Until", cell: ({ until }) => (until === null ? "resumed by hand" : <When at={until} />) },
              {
                head: "Actions",
                kind: "acts",
                cell: ({ kind, name }) => <ResumeButton kind={kind} name={name} again={again} />,
              },
            ]}
          />
        </Part>
      )}
      <Part title="Limits">
        {limits.data?.items.length === 0 ? (
          <Empty says="No limit is set. `tenants`, `services` and job types take rates, budgets and weights." />
        ) : (
          <Table
            rows={limits.data?.items ?? []}
            id={({ kind, name }) => `${kind}:${name}`}
            says="Limits"
            columns={LIMIT_COLUMNS}
          />
        )}
      </Part>
      <Twin of="queues list" />
    </>
  );
}

const LIMIT_COLUMNS = [
  { head: "Of", cell: ({ kind, name }: Limit) => `${kind} ${name}` },
  {
    head: "Rate",
    kind: "main" as const,
    cell: ({ rate }: Limit) =>
      rate && (
        <>
          <Meter
            share={1 - rate.left / Math.max(1, rate.burst)}
            says={`${decimal(rate.limit)} each ${span(rate.perMs)}, ${decimal(rate.left)} free`}
          />{" "}
          {rate.left < 1 && rate.nextAt && (
            <>
              used up, next <When at={rate.nextAt} short />
            </>
          )}
        </>
      ),
  },
  {
    head: "Retry budget",
    cell: ({ budget }: Limit) =>
      budget && (
        <Meter
          share={budget.tokens / budget.capacity}
          says={`${decimal(budget.tokens)} of ${decimal(budget.capacity)} left`}
        />
      ),
  },
  { head: "Weight", kind: "num" as const, cell: ({ weight }: Limit) => (weight === null ? "" : decimal(weight)) },
];
