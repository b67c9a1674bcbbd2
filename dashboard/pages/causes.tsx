// Why jobs die: one row for each cause, however many letters it has, with its trend and what people said of it.
import type { WireCause } from "../../src/http/client.ts";
import { address, to, withQuery } from "../address.ts";
import { Empty, Head, Problem, Spark, State, Twin, Waiting, When } from "../elements.tsx";
import { counted, line, number } from "../format.ts";
import { More, usePages } from "../paging.tsx";
import { api } from "../server.ts";
import { Table } from "../table.tsx";
import { PlanButton } from "./letters.tsx";

const STATES = ["open", "regressed", "muted", "fixed"] as const;
const SORTS = ["most", "newest", "growing"] as const;

const recent = ({ trend }: WireCause): number => trend.slice(-3).reduce((sum, n) => sum + n, 0);

function sorted(items: readonly WireCause[], by: string): readonly WireCause[] {
  if (by === "newest") return items.toSorted((a, b) => Date.parse(b.firstSeen ?? "") - Date.parse(a.firstSeen ?? ""));
  if (by === "growing") return items.toSorted((a, b) => recent(b) - recent(a));
  return items;
}

/** The page. */
export function Causes() {
  const { query } = address.value;
  const [state, sort] = [query.get("state"), query.get("sort") ?? "most"];
  const isIdle = query.get("idle") === "true";
  const { first, rest, more, error, again, next } = usePages(
    `causes ${isIdle}`,
    (cursor, options) => api.causes.list({ limit: 100, idle: isIdle, ...(cursor && { cursor }) }, options),
    ["causes", "jobs"],
  );
  const all = [...(first ?? []), ...rest];
  const items = sorted(state === null ? all : all.filter((cause) => cause.state === state), sort);
  return (
    <>
      <Head title="Causes" says="Dead letters with one cause are one row: look at it, fix it, send all of them back." />
      <nav class="tabs" aria-label="States">
        <a href={withQuery({ state: null })} aria-current={state === null ? "page" : undefined}>
          all {number(all.length)}
        </a>
        {STATES.map((name) => (
          <a key={name} href={withQuery({ state: name })} aria-current={state === name ? "page" : undefined}>
            {name} {number(all.filter((cause) => cause.state === name).length)}
          </a>
        ))}
        <span class="room" />
        {SORTS.map((name) => (
          <a key={name} href={withQuery({ sort: name })} aria-current={sort === name ? "page" : undefined}>
            {name}
          </a>
        ))}
        <a href={withQuery({ idle: isIdle ? null : true })} aria-current={isIdle ? "page" : undefined}>
          also without letters
        </a>
      </nav>
      <Problem error={first ? error : null} hasData again={again} />
      {!first ? (
        <Waiting error={error} again={again} />
      ) : items.length === 0 ? (
        <Empty
          says={
            all.length > 0 ? `No cause is ${state}.` : "No causes: no job is dead. The first dead letter makes one."
          }
          {...(all.length === 0 && { command: "redrive demo --keep" })}
        />
      ) : (
        <Table
          rows={items}
          id={({ fingerprint }) => fingerprint}
          says="Causes"
          columns={[
            { head: "State", cell: ({ state: own }) => <State of={own} as={own === "regressed" ? "dead" : own} /> },
            {
              head: "Error",
              kind: "main",
              cell: ({ fingerprint, sample, note, owner, backIn }) => (
                <>
                  <a href={to("causes", fingerprint)}>{line(`${sample.name}: ${sample.message}`, 110)}</a>
                  {(note ?? owner ?? backIn) && (
                    <small class="dim">
                      {backIn && ` back in ${backIn}`} {owner && ` ${owner}`} {note && `“${line(note, 60)}”`}
                    </small>
                  )}
                </>
              ),
            },
            {
              head: "24 hours",
              kind: "wide",
              cell: ({ trend, deaths, failures }) => (
                <Spark of={trend} says={`${counted(deaths, "death")}, ${counted(failures, "failure")} in 24 hours`} />
              ),
            },
            { head: "Dead", kind: "num", cell: ({ dead }) => number(dead) },
            { head: "First seen", kind: "wide", cell: ({ firstSeen }) => <When at={firstSeen} /> },
            { head: "Last seen", cell: ({ lastSeen }) => <When at={lastSeen} short /> },
            { head: "Types", kind: "wide", cell: ({ types }) => types.join(", ") },
            {
              head: "Releases",
              kind: "wide",
              cell: ({ releases }) =>
                releases.map(({ release, failures }) => `${release || "–"} ×${number(failures)}`).join(", "),
            },
            {
              head: "Actions",
              kind: "acts",
              cell: ({ fingerprint, dead }) =>
                dead === 0 ? null : <PlanButton body={{ selection: { fingerprint } }} says="plan" kind="quiet" />,
            },
          ]}
        />
      )}
      <More next={next} more={more} />
      <Twin of="dlq causes" />
    </>
  );
}
