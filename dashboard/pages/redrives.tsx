// The redrive runs, newest first.
import { address, to, withQuery } from "../address.ts";
import { Empty, Head, Meter, Problem, State, Twin, Waiting, When } from "../elements.tsx";
import { line, number } from "../format.ts";
import { More, usePages } from "../paging.tsx";
import { api } from "../server.ts";
import { Table } from "../table.tsx";

const STATES = ["running", "paused", "stopped", "completed", "cancelled"] as const;
type RunState = (typeof STATES)[number];

/** The page. */
export function Redrives() {
  const state = STATES.find((each) => each === address.value.query.get("state")) ?? null;
  const { first, rest, more, error, again, next } = usePages(
    `redrives ${state}`,
    (cursor, options) =>
      api.redrives.list({ limit: 50, ...(state && { state: state as RunState }), ...(cursor && { cursor }) }, options),
    ["redrives", "jobs"],
  );
  const items = [...(first ?? []), ...rest];
  return (
    <>
      <Head title="Redrives" says="Dead letters on their way back to work: a canary first, the rest once it is good." />
      <nav class="tabs" aria-label="States">
        <a href={withQuery({ state: null })} aria-current={state === null ? "page" : undefined}>
          all
        </a>
        {STATES.map((name) => (
          <a key={name} href={withQuery({ state: name })} aria-current={state === name ? "page" : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <Problem error={first ? error : null} hasData again={again} />
      {!first ? (
        <Waiting error={error} again={again} />
      ) : items.length === 0 ? (
        <Empty
          says={
            state === null ? "No redrive yet. Plan one from a cause, or from dead letters." : `No redrive is ${state}.`
          }
        >
          <a href="#/causes">causes ›</a>
        </Empty>
      ) : (
        <Table
          rows={items}
          id={({ id }) => id}
          says="Redrives"
          columns={[
            {
              head: "State",
              cell: (run) => <State of={run.state} as={run.state === "stopped" ? "dead" : run.state} />,
            },
            {
              head: "Run",
              kind: "main",
              cell: ({ id, reason, why, by }) => (
                <>
                  <a href={to("redrives", id)}>{line(why ?? id, 70)}</a> <small class="dim">by {by}</small>
                  {reason && <div class="dim">{line(reason, 110)}</div>}
                </>
              ),
            },
            {
              head: "Done",
              cell: ({ completed, toSend }) => (
                <Meter
                  share={toSend === 0 ? 0 : completed / toSend}
                  says={`${number(completed)} of ${number(toSend)}`}
                />
              ),
            },
            { head: "Failed", kind: "num", cell: ({ failed }) => number(failed) },
            { head: "Recalled", kind: "num", cell: ({ recalled }) => number(recalled) },
            { head: "Started", cell: ({ startedAt }) => <When at={startedAt} /> },
          ]}
        />
      )}
      <More next={next} more={more} />
      <Twin of="redrives list" />
    </>
  );
}
