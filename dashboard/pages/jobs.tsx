// Jobs by state, type, tenant, service and key; several can be ticked and changed together.
import { useState } from "preact/hooks";
import type { WireInput, WireJob } from "../../src/http/client.ts";
import { Act, filled, flag } from "../act.tsx";
import { address, to } from "../address.ts";
import { Copy, Empty, Head, JobLink, Problem, State, Twin, Waiting, When } from "../elements.tsx";
import { type FilterField, Filters, filtersOf } from "../filters.tsx";
import { counted, line, number, quoted } from "../format.ts";
import { More, usePages } from "../paging.tsx";
import { api } from "../server.ts";
import { Table } from "../table.tsx";

const FIELDS: readonly FilterField[] = [
  { name: "state", says: "state", choices: ["queued", "running", "completed", "dead", "cancelled"] },
  { name: "type", says: "type" },
  { name: "tenant", says: "tenant" },
  { name: "service", says: "service" },
  { name: "queue", says: "queue" },
  { name: "key", says: "key" },
  { name: "due", says: "due", choices: ["true", "false"] },
  { name: "tried", says: "tried", choices: ["true", "false"] },
  { name: "sort", says: "order", choices: ["due"] },
];

type Asked = NonNullable<WireInput<"jobs.list">>;

function askedOf(filters: Record<string, string>): Asked {
  const { due, tried, ...rest } = filters;
  return {
    ...rest,
    ...(due && { due: due === "true" }),
    ...(tried && { tried: tried === "true" }),
    limit: 50,
    payloads: false,
  } as Asked;
}

/** What a job tells in its row: its error leads to it. */
export function JobText({ job }: { job: WireJob }) {
  const text = job.failure ? `${job.failure.name}: ${job.failure.message}` : (job.key ?? "");
  return text === "" ? <span class="dim">–</span> : <a href={to("jobs", job.id)}>{line(text, 110)}</a>;
}

/** When a job is due or has ended. */
function Next({ job }: { job: WireJob }) {
  if (job.finishedAt !== null) return <When at={job.finishedAt} />;
  return <When at={job.state === "running" ? job.startedAt : job.runAt} />;
}

/** The page. */
export function Jobs() {
  const filters = filtersOf(FIELDS);
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const { first, rest, more, error, again, next, seenTo } = usePages(
    `jobs ${JSON.stringify(filters)}`,
    (cursor, options) => api.jobs.list({ ...askedOf(filters), ...(cursor && { cursor }) }, options),
    ["jobs"],
  );
  const items = [...(first ?? []), ...rest];
  const isFiltered = address.value.query.size > 0;
  const command = `jobs list${Object.entries(filters)
    .filter(([name]) => ["state", "type", "tenant", "service", "key"].includes(name))
    .map(([name, value]) => flag(name, value))
    .join("")}`;
  return (
    <>
      <Head title="Jobs" says="Every job the store keeps, newest first." />
      <Filters fields={FIELDS} />
      <Problem error={first ? error : null} hasData again={again} />
      {ticked.size > 0 && <Ticked ids={[...ticked]} untick={() => setTicked(new Set())} />}
      {!first ? (
        <Waiting error={error} again={again} />
      ) : items.length === 0 ? (
        isFiltered ? (
          <Empty says={seenTo === null ? "No job is like this." : "No job so far is like this."} />
        ) : (
          <Empty says="No jobs yet. They stand here once a program enqueues one." command="redrive enqueue mail '{}'" />
        )
      ) : (
        <>
          <p class="dim count">
            {counted(items.length, "job")} shown{next !== null && seenTo === null && ", there are more"}
          </p>
          <Table
            rows={items}
            id={({ id }) => id}
            says="Jobs"
            ticks={{ ids: ticked, set: setTicked }}
            columns={[
              { head: "State", cell: (job) => <State of={job.shown} /> },
              { head: "Type", cell: (job) => job.type },
              { head: "Job", kind: "wide", cell: (job) => <JobLink id={job.id} /> },
              {
                head: "Failed tries",
                kind: "num",
                cell: (job) => `${number(job.attempts)}/${number(job.maxAttempts)}`,
              },
              { head: "Due or ended", cell: (job) => <Next job={job} /> },
              { head: "Tenant", kind: "wide", cell: (job) => job.tenant ?? "" },
              { head: "Error or key", kind: "main", cell: (job) => <JobText job={job} /> },
              {
                head: "Actions",
                kind: "acts",
                cell: (job) =>
                  job.state === "queued" && (
                    <a class="button quiet" data-key="e" href={to("jobs", job.id)}>
                      explain
                    </a>
                  ),
              },
            ]}
          />
        </>
      )}
      <More next={next} more={more} seenTo={seenTo} />
      <Twin of={command} />
    </>
  );
}

function Ticked({ ids, untick }: { ids: readonly string[]; untick: () => void }) {
  const target = { ids: [...ids] };
  const list = ids.map(quoted).join(" ");
  const act = (action: "retry" | "cancel" | "reschedule", values: Readonly<Record<string, string>>) =>
    api.bulk.act({ action, target, ...filled(values) } as WireInput<"bulk.act">).then((answer) => {
      untick();
      return answer;
    });
  const told = (answer: Readonly<Record<string, number>>): string =>
    Object.entries(answer)
      .map(([name, n]) => `${name} ${number(n)}`)
      .join(", ");
  return (
    <div class="bar" role="toolbar" aria-label="Ticked jobs">
      <b>{number(ids.length)} ticked</b>
      <Act
        label="run now"
        says={`Makes the waiting ones of ${counted(ids.length, "job")} due, and sends the dead ones back to work.`}
        command={() => `jobs retry ${list}`}
        run={(values) => act("retry", values)}
        done={told}
      />
      <Act
        label="later"
        says={`Makes ${counted(ids.length, "waiting job")} due after this long.`}
        fields={[{ name: "delay", says: "After", value: "10m", needed: true }]}
        command={({ delay = "" }) => `jobs reschedule ${list}${flag("delay", delay)}`}
        run={(values) => act("reschedule", values)}
        done={told}
      />
      <Act
        label="cancel"
        kind="danger"
        says={`Cancels ${counted(ids.length, "job")}: waiting ones never run, running ones are asked to stop.`}
        command={() => `jobs cancel ${list}`}
        run={(values) => act("cancel", values)}
        done={told}
      />
      <Copy text={ids.join("\n")} says="copy ids" />
      <button type="button" class="quiet" onClick={untick}>
        untick
      </button>
    </div>
  );
}
