// Dead letters with their errors, filtered by what one looks for; ticked ones can be planned or removed.
import { useState } from "preact/hooks";
import type { WireInput } from "../../src/http/client.ts";
import { Act, filled, flag } from "../act.tsx";
import { address, go, to } from "../address.ts";
import { Copy, Empty, Head, Problem, State, Twin, Waiting, When } from "../elements.tsx";
import { type FilterField, Filters, filtersOf } from "../filters.tsx";
import { counted, line, number, quoted } from "../format.ts";
import { More, usePages } from "../paging.tsx";
import { api, may, saidOf, session } from "../server.ts";
import { Table } from "../table.tsx";

const CLASSES = "transient rate_limited network system permanent validation authentication timeout stuck crashed".split(
  " ",
);
const REASONS = "exhausted permanent deadline stuck crashed breaker manual".split(" ");

const FIELDS: readonly FilterField[] = [
  { name: "type", says: "type" },
  { name: "service", says: "service" },
  { name: "tenant", says: "tenant" },
  { name: "key", says: "key" },
  { name: "class", says: "class", choices: CLASSES },
  { name: "reason", says: "reason", choices: REASONS },
  { name: "fingerprint", says: "cause" },
  { name: "text", says: "error has", hint: "declined" },
  { name: "from", says: "from", hint: "-2h" },
  { name: "until", says: "until", hint: "-1h" },
  { name: "redriven", says: "sent back", choices: ["true", "false"] },
  { name: "redrive", says: "run" },
  { name: "outcome", says: "outcome", choices: ["completed", "failing", "dead", "cancelled", "recalled"] },
];

type Asked = NonNullable<WireInput<"letters.list">>;

const askedOf = ({ redriven, ...rest }: Record<string, string>): Asked =>
  ({ ...rest, ...(redriven && { redriven: redriven === "true" }), payloads: false, limit: 50 }) as Asked;

/** Fields by which a plan can select. */
const PLANNED = ["type", "service", "tenant", "key", "class", "fingerprint", "from", "until", "text"];

/** Makes a plan and goes to it. */
export async function planOf(body: WireInput<"plans.make">): Promise<void> {
  const { id } = await api.plans.make(body);
  go(to("plans", id));
}

/** A button that plans at once: a plan changes no job. */
export function PlanButton({
  body,
  says = "Plan redrive",
  kind = "main",
  off = null,
}: {
  body: WireInput<"plans.make">;
  says?: string;
  kind?: string;
  off?: string | null;
}) {
  const [error, setError] = useState<string | null>(null);
  const lacks = may("operator") ? off : "It needs the role operator.";
  return (
    <span class="act">
      <button
        type="button"
        class={kind}
        data-key="p"
        disabled={lacks !== null}
        title={lacks ?? ""}
        onClick={() => void planOf(body).catch((problem: unknown) => setError(saidOf(problem)))}
      >
        {says}
      </button>
      <Problem error={error} />
    </span>
  );
}

/** The page. */
export function Letters() {
  const filters = filtersOf(FIELDS);
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const { first, rest, more, error, again, next, seenTo } = usePages(
    `letters ${JSON.stringify(filters)}`,
    (cursor, options) => api.letters.list({ ...askedOf(filters), ...(cursor && { cursor }) }, options),
    ["jobs", "causes"],
  );
  const items = [...(first ?? []), ...rest];
  const isFiltered = address.value.query.size > 0;
  const selection = Object.fromEntries(Object.entries(filters).filter(([name]) => PLANNED.includes(name)));
  const flags = Object.entries(filters)
    .filter(([name]) => [...PLANNED, "reason"].includes(name))
    .map(([name, value]) => flag(name, value))
    .join("");
  const isPlannable =
    Object.keys(selection).length > 0 && Object.keys(selection).length === Object.keys(filters).length;
  return (
    <>
      <Head title="Dead letters" says="Jobs that will not run again by themselves, newest first. Nothing here is lost.">
        {isPlannable && items.length > 0 && <PlanButton body={{ selection }} says="Plan redrive of all that match" />}
        {session.value?.payloads && items.length > 0 && (
          <a
            class="button"
            href={`api/v1/dead-letters.ndjson?${new URLSearchParams(filters).toString()}`}
            download="dead-letters.ndjson"
          >
            export NDJSON
          </a>
        )}
      </Head>
      <Filters fields={FIELDS} />
      <Problem error={first ? error : null} hasData again={again} />
      {ticked.size > 0 && <Ticked ids={[...ticked]} untick={() => setTicked(new Set())} />}
      {!first ? (
        <Waiting error={error} again={again} />
      ) : items.length === 0 ? (
        <Empty
          says={
            isFiltered
              ? seenTo === null
                ? "No dead letter is like this."
                : "No dead letter so far is like this."
              : "No dead letters: every job that failed has been retried, or waits for it."
          }
          {...(!isFiltered && { command: "redrive demo --keep" })}
        />
      ) : (
        <>
          <p class="dim count">
            {counted(items.length, "letter")} shown{next !== null && seenTo === null && ", there are more"}
          </p>
          <Table
            rows={items}
            id={({ id }) => id}
            says="Dead letters"
            ticks={{ ids: ticked, set: setTicked }}
            columns={[
              { head: "Died", cell: ({ diedAt }) => <When at={diedAt} /> },
              { head: "Type", cell: ({ type }) => type },
              {
                head: "Error",
                kind: "main",
                cell: ({ id, failure }) => (
                  <a href={to("jobs", id)}>{line(`${failure.name}: ${failure.message}`, 120)}</a>
                ),
              },
              { head: "Why", cell: ({ reason }) => reason },
              { head: "Tries", kind: "num", cell: ({ attempts }) => number(attempts) },
              { head: "Tenant", kind: "wide", cell: ({ tenant }) => tenant ?? "" },
              { head: "Release", kind: "wide", cell: ({ release }) => release ?? "" },
              { head: "Now", cell: ({ shown }) => <State of={shown} /> },
              {
                head: "Cause",
                kind: "wide",
                cell: ({ failure }) => (
                  <a class="mono" href={to("causes", failure.fingerprint)}>
                    {failure.fingerprint.slice(0, 8)}
                  </a>
                ),
              },
            ]}
          />
        </>
      )}
      <More next={next} more={more} seenTo={seenTo} />
      <Twin of={`dlq list${flags}`} />
    </>
  );
}

function Ticked({ ids, untick }: { ids: readonly string[]; untick: () => void }) {
  return (
    <div class="bar" role="toolbar" aria-label="Ticked dead letters">
      <b>{number(ids.length)} ticked</b>
      <PlanButton body={{ selection: { ids: [...ids] } }} says={`Plan redrive of ${number(ids.length)}`} />
      <Act
        label="remove"
        kind="danger"
        needs="admin"
        says={`Deletes ${counted(ids.length, "job")} with payloads and history. This cannot be undone.`}
        command={() => `dlq remove ${ids.map(quoted).join(" ")}`}
        run={(values) =>
          api.bulk
            .act({ action: "remove", target: { ids: [...ids] }, ...filled(values) })
            .then((answer) => (untick(), answer))
        }
        done={(answer: Readonly<Record<string, number>>) =>
          Object.entries(answer)
            .map(([name, n]) => `${name} ${n}`)
            .join(", ")
        }
      />
      <Copy text={ids.join("\n")} says="copy ids" />
      <button type="button" class="quiet" onClick={untick}>
        untick
      </button>
    </div>
  );
}
