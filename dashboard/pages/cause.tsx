// One cause: what triage advises, how it grew beside outages and releases, its sample, its letters, what people said.
import type { WireCauseDetails, WireLetter } from "../../src/http/client.ts";
import { Act, filled, flag } from "../act.tsx";
import { to, toWith } from "../address.ts";
import { Copy, Empty, Facts, Head, Part, Problem, State, Twin, Waiting, When } from "../elements.tsx";
import { clock, counted, line, now, number, quoted, span } from "../format.ts";
import { useLoad } from "../live.ts";
import { More, usePages } from "../paging.tsx";
import { outagesFrom, Plot } from "../plots.tsx";
import { api, may } from "../server.ts";
import { Stack } from "../stack.tsx";
import { Table } from "../table.tsx";
import { Doings } from "./events.tsx";
import { PlanButton } from "./letters.tsx";

type Details = WireCauseDetails;

/** The page. */
export function Cause({ fingerprint }: { fingerprint: string }) {
  const { data, error, status, again } = useLoad(
    `cause ${fingerprint}`,
    (options) => api.causes.get({ fingerprint }, options),
    ["causes", "jobs", "redrives", "control"],
  );
  const letters = usePages(
    `letters of ${fingerprint}`,
    (cursor, options) =>
      api.causes.letters({ fingerprint, payloads: false, limit: 20, ...(cursor && { cursor }) }, options),
    ["causes", "jobs"],
  );
  const path = [["Causes", "#/causes"]] as const;
  if (!data)
    return status === 404 ? (
      <>
        <Head path={path} title={fingerprint} />
        <Empty says="There is no such cause. No failure of it was seen for 90 days, or the address was cut off." />
      </>
    ) : (
      <Waiting error={error} again={again} />
    );
  const newest = letters.first?.[0] ?? null;
  return (
    <>
      <Head
        path={path}
        title={line(`${data.sample.name}: ${data.sample.message}`, 160)}
        says={
          <>
            <State of={data.state} as={data.state === "regressed" ? "dead" : data.state} /> {data.says}
            {data.owner && <> · owner {data.owner}</>}
            {data.note && (
              <>
                {" "}
                · <q>{data.note}</q>
              </>
            )}
          </>
        }
      >
        <Actions of={data} again={again} />
      </Head>
      <Problem error={error} hasData again={again} />
      {data.triage && (
        <p class={`triage is-${data.triage.advice}`}>
          <b>Triage: {data.triage.advice}</b> {data.triage.reason}
        </p>
      )}
      <Growth of={data} newest={newest} />
      <AllFacts of={data} />
      {newest && (
        <Part title="Newest letter" more={<a href={to("jobs", newest.id)}>its job ›</a>}>
          <pre class="error">{`${newest.failure.name}: ${newest.failure.message}`}</pre>
          <Stack of={newest.failure.stack} />
        </Part>
      )}
      <Letters of={letters} fingerprint={fingerprint} />
      <Runs fingerprint={fingerprint} />
      <Doings subject={`cause:${fingerprint}`} most={8} title="What people did" />
      <Twin of={`dlq causes show ${fingerprint}`} />
    </>
  );
}

function Actions({
  of: { fingerprint, state, dead, revision, note, owner, ...rest },
  again,
}: {
  of: Details;
  again: () => void;
}) {
  const change = (body: object) => (values: Readonly<Record<string, string>>) =>
    api.causes.change({ fingerprint, ...body, ...filled(values) }, { ifMatch: revision }).then(again);
  const command = `dlq causes`;
  const isShut = state === "muted" || state === "fixed";
  return (
    <>
      <PlanButton body={{ selection: { fingerprint } }} off={dead === 0 ? "It has no dead letter." : null} />
      {may("operator") && dead > 0 && (
        <a class="button" href={to("recipe", fingerprint)}>
          Repair
        </a>
      )}
      {isShut ? (
        <Act
          label={state === "muted" ? "Unmute" : "Reopen"}
          says="It counts as open again."
          command={() => `${command} ${state === "muted" ? "unmute" : "reopen"} ${fingerprint}`}
          run={change({ state: "open" })}
        />
      ) : (
        <>
          <Act
            label="Mute"
            says="It raises no attention for this long. Its jobs die and are kept as before."
            fields={[{ name: "for", says: "For", value: "2h", needed: true }]}
            command={({ for: time }) => `${command} mute ${fingerprint}${flag("for", time)}`}
            run={change({ state: "muted" })}
          />
          <Act
            label="Fixed in"
            says="If a failure of this release or a newer one comes, it is a regression. Failures of older releases do not reopen it."
            fields={[{ name: "in", says: "Release with the fix", hint: "1.5.3; empty: from now on" }]}
            command={({ in: release }) => `${command} fix ${fingerprint}${flag("in", release)}`}
            run={change({ state: "fixed" })}
          />
        </>
      )}
      <Act
        label="Note"
        says="For the people who look at this cause next."
        fields={[
          { name: "note", says: "Note", value: note ?? "" },
          { name: "owner", says: "Owner", value: owner ?? "" },
        ]}
        command={({ note: text = "" }) => `${command} note ${fingerprint} ${quoted(text)}`}
        run={change({})}
      />
      <Copy
        text={() => markdownOf({ fingerprint, state, dead, revision, note, owner, ...rest })}
        says="copy as Markdown"
      />
    </>
  );
}

/** The cause as text for an incident report. */
function markdownOf({
  fingerprint,
  sample,
  state,
  dead,
  firstSeen,
  lastSeen,
  types,
  releases,
  triage,
  note,
  owner,
}: Details): string {
  const link = `${location.href.split("#")[0]}${to("causes", fingerprint)}`;
  return [
    `**${line(`${sample.name}: ${sample.message}`)}** ([${fingerprint}](${link}))`,
    "",
    `- ${state}, ${counted(dead, "dead letter")}`,
    `- first seen ${firstSeen ?? "–"}, last seen ${lastSeen ?? "–"}`,
    `- types: ${types.join(", ") || "–"}`,
    ...(releases.length > 0
      ? [
          `- releases: ${releases.map(({ release, failures }) => `${release || "without a name"} ×${failures}`).join(", ")}`,
        ]
      : []),
    ...(triage ? [`- triage: ${triage.advice}, ${triage.reason}`] : []),
    ...(owner ? [`- owner: ${owner}`] : []),
    ...(note ? [`- note: ${note}`] : []),
    "",
  ].join("\n");
}

function Growth({ of: { fingerprint, firstSeen }, newest }: { of: Details; newest: WireLetter | null }) {
  const trend = useLoad(`trend ${fingerprint}`, (options) => api.causes.trend({ fingerprint }, options), [
    "causes",
    "flow",
  ]);
  const events = useLoad(
    "outages",
    (options) => api.events.list({ kind: "breaker.changed", from: "-24h", limit: 200 }, options),
    ["control"],
  );
  const releases = useLoad("releases", (options) => api.events.list({ kind: "release.seen", limit: 50 }, options), [
    "workers",
  ]);
  if (!trend.data) return null;
  const points = trend.data.items;
  const begin = Date.parse(points[0]?.at ?? "");
  const marks = (releases.data?.items ?? [])
    .map(({ subject, at }) => ({ at: Date.parse(at), says: (subject ?? "").slice(8) }))
    .filter(({ at }) => at >= begin);
  const before = (releases.data?.items ?? []).find(
    ({ at }) => firstSeen !== null && Date.parse(at) <= Date.parse(firstSeen),
  );
  const lag = before && firstSeen !== null ? Date.parse(firstSeen) - Date.parse(before.at) : null;
  const outages = outagesFrom(events.data?.items ?? [], newest?.service ?? undefined);
  return (
    <Part
      title="Last 24 hours"
      more={
        <small class="dim">
          first seen {firstSeen === null ? "–" : clock(Date.parse(firstSeen), now.value)}
          {lag !== null && lag < 86_400_000 && `, ${span(lag, 1)} after release ${(before?.subject ?? "").slice(8)}`}
        </small>
      }
    >
      <Plot
        says={`${counted(
          points.reduce((sum, { failures }) => sum + failures, 0),
          "failure",
        )} and ${counted(
          points.reduce((sum, { deaths }) => sum + deaths, 0),
          "death",
        )} in 24 hours, in steps of 10 minutes.`}
        data={{
          at: points.map(({ at }) => Date.parse(at)),
          lines: [
            { says: "failures", kind: "retrying", values: points.map(({ failures }) => failures), dash: [6, 3] },
            { says: "deaths", kind: "dead", values: points.map(({ deaths }) => deaths) },
            { says: "sent back", kind: "running", values: points.map(({ redriven }) => redriven), dash: [2, 2] },
          ],
          outages: outages.filter(({ until }) => until === null || until > begin),
          marks,
        }}
      />
    </Part>
  );
}

const named = (items: readonly { readonly name: string; readonly count: number }[]): string =>
  items.map(({ name, count }) => `${name || "none"} ${number(count)}`).join(", ") || "–";

function AllFacts({ of: { letters, ...cause } }: { of: Details }) {
  return (
    <Part
      title="Facts"
      more={letters.looked < cause.dead && <small class="dim">of the newest {number(letters.looked)} letters</small>}
    >
      <Facts
        of={[
          ["Dead", number(cause.dead)],
          ["Failures in 24 hours", `${number(cause.failures)}, of them ${counted(cause.deaths, "death")}`],
          ["First seen", <When at={cause.firstSeen} />],
          ["Last seen", <When at={cause.lastSeen} />],
          ["Types", cause.types.join(", ") || "–"],
          ["Tenants", named(letters.tenants)],
          ["Services", named(letters.services)],
          ["Classes", named(letters.classes)],
          ["Died because", named(letters.reasons)],
          [
            "Releases",
            cause.releases
              .map(({ release, failures }) => `${release || "without a name"} ×${number(failures)}`)
              .join(", ") || "–",
          ],
          cause.still.length > 0 && [
            "Older releases still fail",
            cause.still.map(({ release, failures }) => `${release} ×${number(failures)}`).join(", "),
          ],
          cause.fixedIn !== null && ["Fixed in", cause.fixedIn],
          cause.by !== null && ["Said by", cause.by],
        ]}
      />
    </Part>
  );
}

function Letters({
  of: { first, rest, next, more },
  fingerprint,
}: {
  of: ReturnType<typeof usePages<WireLetter>>;
  fingerprint: string;
}) {
  const items = [...(first ?? []), ...rest];
  if (items.length === 0) return null;
  return (
    <Part title="Letters" more={<a href={toWith(["dead-letters"], { fingerprint })}>all with filters ›</a>}>
      <Table
        rows={items}
        id={({ id }) => id}
        says="Letters of this cause"
        columns={[
          { head: "Died", cell: ({ diedAt }) => <When at={diedAt} /> },
          {
            head: "Job",
            kind: "main",
            cell: ({ id, failure, key }) => <a href={to("jobs", id)}>{line(key ?? failure.message, 90)}</a>,
          },
          { head: "Type", cell: ({ type }) => type },
          { head: "Tenant", kind: "wide", cell: ({ tenant }) => tenant ?? "" },
          { head: "Release", kind: "wide", cell: ({ release }) => release ?? "" },
          { head: "Now", cell: ({ shown }) => <State of={shown} /> },
        ]}
      />
      <More next={next} more={more} />
    </Part>
  );
}

function Runs({ fingerprint }: { fingerprint: string }) {
  const { data } = useLoad("redrives", (options) => api.redrives.list({ limit: 100 }, options), ["redrives"]);
  const runs = (data?.items ?? []).filter(({ selection }) => selection["fingerprint"] === fingerprint).slice(0, 10);
  if (runs.length === 0) return null;
  return (
    <Part title="Redrives">
      <ul class="lines">
        {runs.map(({ id, state, completed, toSend, startedAt, by, reason }) => (
          <li key={id}>
            <When at={startedAt} /> <State of={state} as={state === "stopped" ? "dead" : state} /> {by}:{" "}
            <a href={to("redrives", id)}>
              {number(completed)} of {number(toSend)} completed{reason && `, ${line(reason, 90)}`}
            </a>
          </li>
        ))}
      </ul>
    </Part>
  );
}
