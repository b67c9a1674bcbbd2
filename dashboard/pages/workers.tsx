// The workers of the fleet: where each runs, which release, how busy; and runs that take too long.
import { Act, filled } from "../act.tsx";
import { Empty, Head, JobLink, Meter, Part, Problem, State, Twin, Waiting, When } from "../elements.tsx";
import { counted, line, number, span } from "../format.ts";
import { useLoad } from "../live.ts";
import { api } from "../server.ts";
import { Table } from "../table.tsx";

/** The page. */
export function Workers() {
  const { data, error, again } = useLoad("workers", (options) => api.workers.list({}, options), ["workers"], 5_000);
  const stuck = useLoad("stuck", (options) => api.stuck.list({}, options), ["workers"], 15_000);
  if (!data) return <Waiting error={error} again={again} />;
  const items = data.items.toSorted((a, b) => Number(b.alive) - Number(a.alive));
  const runs = stuck.data?.items ?? [];
  return (
    <>
      <Head
        title="Workers"
        says="Processes that take jobs. A worker that is gone loses nothing: others take over its runs."
      />
      <Problem error={error} hasData again={again} />
      {items.length === 0 ? (
        <Empty says="No worker runs: jobs wait." command="redrive worker --jobs jobs.ts" />
      ) : (
        <Table
          rows={items}
          id={({ id }) => id}
          says="Workers"
          columns={[
            {
              head: "State",
              cell: ({ alive, givenUp }) => (
                <State
                  of={alive ? "alive" : "gone"}
                  says={givenUp ? "given up" : alive ? "alive" : "gone"}
                  as={alive ? "completed" : "dead"}
                />
              ),
            },
            {
              head: "Worker",
              kind: "main",
              cell: ({ id, host, pid }) => (
                <>
                  <span class="mono">{id}</span>{" "}
                  <small class="dim">
                    {host}, pid {pid}
                  </small>
                </>
              ),
            },
            { head: "Release", cell: ({ release }) => release ?? "–" },
            {
              head: "Busy",
              cell: ({ running, slots }) =>
                slots === null ? (
                  number(running)
                ) : (
                  <Meter share={running / Math.max(1, slots)} says={`${number(running)}/${number(slots)} slots`} />
                ),
            },
            { head: "Beat", cell: ({ beatAt }) => <When at={beatAt} short /> },
            { head: "Since", kind: "wide", cell: ({ startedAt }) => <When at={startedAt} short /> },
            {
              head: "Serves",
              kind: "wide",
              cell: ({ types, queues }) =>
                line([...types, ...(queues ?? []).map((name) => `queue ${name}`)].join(", "), 80),
            },
          ]}
        />
      )}
      <Part
        title="Stuck runs"
        more={
          runs.length > 0 && (
            <Act
              label={`End ${counted(runs.length, "stuck run")}`}
              kind="danger"
              says="Ends these runs now: their jobs are retried or die as their limits say."
              command={() => "stuck fix"}
              run={(values) => api.stuck.fix(filled(values)).then((answer) => (stuck.again(), answer))}
              done={({ fixed }: { fixed: number }) => `${counted(fixed, "run")} ended.`}
            />
          )
        }
      >
        {runs.length === 0 ? (
          <Empty says="No run takes longer than its limit." />
        ) : (
          <Table
            rows={runs}
            id={({ id }) => id}
            says="Stuck runs"
            columns={[
              { head: "Job", cell: ({ id }) => <JobLink id={id} /> },
              { head: "Type", cell: ({ type }) => type },
              {
                head: "Runs for",
                kind: "num",
                cell: ({ ranMs, limitMs }) => `${span(ranMs)}${limitMs === null ? "" : ` of ${span(limitMs)}`}`,
              },
              {
                head: "Ending it would",
                kind: "main",
                cell: ({ verdict, message }) => `${verdict}${message ? `: ${line(message, 90)}` : ""}`,
              },
              { head: "Worker", kind: "wide", cell: ({ worker }) => worker ?? "" },
            ]}
          />
        )}
      </Part>
      <Twin of="stuck list" />
    </>
  );
}
