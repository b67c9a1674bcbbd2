// Jobs at set times: when they ran last and run next; and the upkeep that workers do.
import type { WireSchedule, WireUpkeep } from "../../src/http/client.ts";
import { Act, filled } from "../act.tsx";
import { to } from "../address.ts";
import { Empty, Head, Part, Problem, State, Twin, Waiting, When } from "../elements.tsx";
import { number, quoted, span } from "../format.ts";
import { useLoad } from "../live.ts";
import { api } from "../server.ts";
import { Table } from "../table.tsx";

const timing = ({ cron, timezone, everyMs }: WireSchedule): string =>
  cron === null ? `every ${span(everyMs ?? 0)}` : `${cron}${timezone ? ` ${timezone}` : ""}`;

/** The page. */
export function Schedules() {
  const { data, error, again } = useLoad("schedules", (options) => api.schedules.list({}, options), ["schedules"]);
  if (!data) return <Waiting error={error} again={again} />;
  const own = data.items.filter((item): item is WireSchedule => item.kind === "schedule");
  const upkeep = data.items.filter((item): item is WireUpkeep => item.kind === "upkeep");
  return (
    <>
      <Head title="Schedules" says="Each makes a job at its times, once for the whole fleet." />
      <Problem error={error} hasData again={again} />
      {own.length === 0 ? (
        <Empty says="No schedule yet." command="redrive schedules add nightly --cron '0 3 * * *' report" />
      ) : (
        <Table
          rows={own}
          id={({ name }) => name}
          says="Schedules"
          columns={[
            { head: "Name", cell: ({ name, paused }) => (paused ? <State of="paused" says={name} /> : name) },
            { head: "When", kind: "main", cell: (each) => <code>{timing(each)}</code> },
            { head: "Job", kind: "wide", cell: ({ job }) => job },
            {
              head: "Last",
              cell: ({ lastAt, lastJob, result }) => (
                <>
                  {result &&
                    (lastJob ? (
                      <a href={to("jobs", lastJob)}>
                        <State of={result} />
                      </a>
                    ) : (
                      <State of={result} />
                    ))}{" "}
                  <When at={lastAt} />
                </>
              ),
            },
            { head: "Next", cell: ({ nextAt, paused }) => (paused ? "paused" : <When at={nextAt} />) },
            { head: "Made", kind: "num", cell: ({ fired }) => number(fired) },
            { head: "Skipped", kind: "num", cell: ({ skipped }) => number(skipped) },
            { head: "Actions", kind: "acts", cell: (each) => <Acts of={each} again={again} /> },
          ]}
        />
      )}
      <Part title="Upkeep" more={<small class="dim">what workers do for the fleet</small>}>
        {upkeep.length === 0 ? (
          <Empty says="No worker has done any yet." />
        ) : (
          <Table
            rows={upkeep}
            id={({ name, worker }) => `${name} ${worker}`}
            says="Upkeep"
            columns={[
              { head: "What", cell: ({ name }) => name },
              {
                head: "Result",
                kind: "main",
                cell: ({ result, error: said }) =>
                  result === null ? (
                    "–"
                  ) : (
                    <>
                      <State of={result} as={result === "ok" ? "completed" : "dead"} /> {said}
                    </>
                  ),
              },
              { head: "Last", cell: ({ lastAt }) => <When at={lastAt} /> },
              { head: "Took", kind: "num", cell: ({ lastMs }) => (lastMs === null ? "" : span(lastMs)) },
              { head: "Next", kind: "wide", cell: ({ nextAt }) => <When at={nextAt} /> },
              { head: "Worker", kind: "wide", cell: ({ worker }) => worker },
            ]}
          />
        )}
      </Part>
      <Twin of="schedules list" />
    </>
  );
}

function Acts({ of: { name, paused, job }, again }: { of: WireSchedule; again: () => void }) {
  return (
    <>
      <Act
        label="Run now"
        kind="quiet"
        says={`Makes one extra ${job} now.`}
        command={() => `schedules run ${quoted(name)}`}
        run={(values) => api.schedules.run({ name, ...filled(values) }).then(again)}
      />
      {paused ? (
        <Act
          label="Resume"
          kind="quiet"
          says="It makes jobs again at its times."
          command={() => `schedules resume ${quoted(name)}`}
          run={(values) => api.schedules.resume({ name, ...filled(values) }).then(again)}
        />
      ) : (
        <Act
          label="Pause"
          kind="quiet"
          says="It makes no jobs until it is resumed."
          command={() => `schedules pause ${quoted(name)}`}
          run={(values) => api.schedules.pause({ name, ...filled(values) }).then(again)}
        />
      )}
    </>
  );
}
