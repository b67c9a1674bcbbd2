// One job: why it waits, its runs on a time axis, its attempts, its payload, and what can be done.
import type { WireAnswer, WireJobWithHistory } from "../../src/http/client.ts";
import { useState } from "preact/hooks";
import { Act, filled, flag } from "../act.tsx";
import { address, to, withQuery } from "../address.ts";
import { Copy, Empty, Facts, Head, Part, Problem, State, Twin, Waiting, When } from "../elements.tsx";
import { decimal, line, number, relative, shortId, span, storeNow } from "../format.ts";
import { layout } from "../json-text.ts";
import { useLoad } from "../live.ts";
import { api, saidOf, session } from "../server.ts";
import { Stack } from "../stack.tsx";
import { Timeline } from "../timeline.tsx";
import { Doings } from "./events.tsx";

type Attempt = WireJobWithHistory["history"][number];

const WAITS = ["queued"];

/** The page. */
export function Job({ id }: { id: string }) {
  const {
    data: job,
    error,
    status,
    again,
  } = useLoad(`job ${id}`, (options) => api.jobs.get({ id, payloads: false }, options), ["jobs"], 5_000);
  const isWaiting = job !== null && WAITS.includes(job.state);
  const why = useLoad(
    isWaiting ? `explain ${id} ${job.updatedAt}` : null,
    (options) => api.jobs.explain({ id }, options),
    ["jobs", "control"],
    5_000,
  );
  const path = [["Jobs", "#/jobs"]] as const;
  if (!job)
    return status === 404 ? (
      <>
        <Head path={path} title={shortId(id)} />
        <Empty says="There is no such job. It may have been removed, or its time in the store is over." />
      </>
    ) : (
      <Waiting error={error} again={again} />
    );
  return (
    <>
      <Head
        path={path}
        title={
          <>
            {job.type} <small class="mono">{shortId(id)}</small> <State of={job.shown} />
          </>
        }
        says={job.state === "queued" ? `Due ${relative(Date.parse(job.runAt), storeNow())}.` : undefined}
      >
        <Actions job={job} again={again} />
      </Head>
      <Problem error={error} hasData again={again} />
      {why.data && <Why of={why.data} />}
      {job.failure && <Failure of={job} />}
      <Timeline job={job} />
      <Tabs job={job} />
      <Doings subject={`job:${id}`} title="What people did" />
      <Twin of={isWaiting ? `jobs explain ${id}` : `jobs show ${id}`} />
    </>
  );
}

function Actions({ job: { id, type, state }, again }: { job: WireJobWithHistory; again: () => void }) {
  const ran = <T,>(answer: T): T => {
    again();
    return answer;
  };
  return (
    <>
      <Copy text={id} says="copy id" />
      {state === "dead" && (
        <a class="button" href={to("repair", id)}>
          Repair
        </a>
      )}
      {(state === "dead" || state === "queued") && (
        <Act
          label={state === "dead" ? "Send back" : "Run now"}
          kind="main"
          says={
            state === "dead" ? `Sends this dead ${type} back to work with new attempts.` : `Makes this ${type} due now.`
          }
          command={() => `jobs retry ${id}`}
          run={(values) => api.jobs.retry({ id, ...filled(values) }).then(ran)}
        />
      )}
      {state === "queued" && (
        <Act
          label="Later"
          says={`Makes this ${type} due after this long.`}
          fields={[{ name: "delay", says: "After", value: "10m", needed: true }]}
          command={({ delay }) => `jobs reschedule ${id}${flag("delay", delay)}`}
          run={(values) => api.jobs.reschedule({ id, ...filled(values) }).then(ran)}
        />
      )}
      {(state === "queued" || state === "running") && (
        <Act
          label="Cancel"
          kind="danger"
          says={state === "running" ? `Asks this ${type} to stop.` : `This ${type} will not run.`}
          command={() => `jobs cancel ${id}`}
          run={(values) => api.jobs.cancel({ id, ...filled(values) }).then(ran)}
        />
      )}
    </>
  );
}

function Why({ of: { summary, reasons } }: { of: WireAnswer<"jobs.explain"> }) {
  return (
    <Part title="Why it waits">
      <p class="lead">{summary}</p>
      <ul class="lines">
        {reasons.map(({ kind, message, next, at }) => (
          <li key={`${kind} ${message}`}>
            <span class="kind">{kind.replaceAll("_", " ")}</span> {message} <b>{next}</b>{" "}
            {at !== null && <When at={at} />}
          </li>
        ))}
      </ul>
    </Part>
  );
}

function Failure({ of: { failure } }: { of: WireJobWithHistory }) {
  if (!failure) return null;
  const { name, message, stack, fingerprint, class: kind, code } = failure;
  return (
    <Part title="Newest error" more={<a href={to("causes", fingerprint)}>cause {fingerprint.slice(0, 8)} ›</a>}>
      <pre class="error">
        {name}: {message}
      </pre>
      <p class="dim">
        class {kind.replaceAll("_", " ")}
        {code && `, code ${code}`}
      </p>
      <Stack of={stack} />
    </Part>
  );
}

/** Attempts, the newest first; the same error in a row is folded, the first error stays. */
function folded(history: readonly Attempt[]): readonly { readonly attempt: Attempt; readonly times: number }[] {
  const groups: { attempt: Attempt; times: number }[] = [];
  for (const attempt of history.toReversed()) {
    const last = groups.at(-1);
    if (last && last.attempt.message === attempt.message && last.attempt.name === attempt.name) last.times += 1;
    else groups.push({ attempt, times: 1 });
  }
  return groups;
}

function Attempts({ history }: { history: readonly Attempt[] }) {
  const [isWhole, setWhole] = useState(false);
  if (history.length === 0) return <Empty says="No run of it has failed." />;
  const groups = isWhole ? history.toReversed().map((attempt) => ({ attempt, times: 1 })) : folded(history);
  const first = history[0] as Attempt;
  const isFirstShown = groups.length === 1 || groups.at(-1)?.attempt.message === first.message;
  return (
    <>
      <ol class="attempts">
        {groups.map(({ attempt, times }) => (
          <li key={`${attempt.generation} ${attempt.attempt} ${attempt.endedAt}`}>
            <b>#{number(attempt.attempt)}</b>
            {times > 1 && <span class="times">×{times}</span>} <When at={attempt.endedAt} />
            <pre class="error">{`${attempt.name}: ${attempt.message}`}</pre>
            <small class="dim">
              {attempt.class.replaceAll("_", " ")}
              {attempt.startedAt && `, ran ${span(Date.parse(attempt.endedAt) - Date.parse(attempt.startedAt))}`}
              {attempt.worker && `, on ${attempt.worker}`}
              {attempt.release && `, release ${attempt.release}`}
              {attempt.delayMs !== null && `, then waited ${span(attempt.delayMs)}`}
              {attempt.generation > 1 && `, sent back ${number(attempt.generation - 1)} times before`}
            </small>
          </li>
        ))}
        {!isFirstShown && (
          <li>
            <b>first</b> <When at={first.endedAt} />
            <pre class="error">{`${first.name}: ${first.message}`}</pre>
          </li>
        )}
      </ol>
      {history.length > groups.length && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          all {history.length}
        </button>
      )}
    </>
  );
}

function Tabs({ job }: { job: WireJobWithHistory }) {
  const tab = address.value.query.get("tab") ?? "attempts";
  const tabs = ["attempts", "payload", "facts"];
  return (
    <section class="part">
      <nav class="tabs" aria-label="Parts of the job">
        {tabs.map((name) => (
          <a key={name} href={withQuery({ tab: name })} aria-current={name === tab ? "page" : undefined}>
            {name}
            {name === "attempts" && ` ${number(job.history.length)}`}
          </a>
        ))}
      </nav>
      {tab === "payload" ? (
        <Payload id={job.id} />
      ) : tab === "facts" ? (
        <All of={job} />
      ) : (
        <Attempts history={job.history} />
      )}
    </section>
  );
}

function Payload({ id }: { id: string }) {
  const [text, setText] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [versions, setVersions] = useState<WireAnswer<"jobs.payloads">["items"]>([]);
  if (!session.value?.payloads) return <Empty says="Payloads are shown to people with the right to see them." />;
  const reveal = async (): Promise<void> => {
    try {
      setText((await api.jobs.payload({ id })) as unknown as string);
      setVersions((await api.jobs.payloads({ id })).items);
    } catch (problem) {
      setError(saidOf(problem));
    }
  };
  if (text === null)
    return (
      <div class="masked">
        <code aria-hidden="true">{"{ ••••••: ••••••••• }"}</code>
        <button type="button" onClick={() => void reveal()}>
          reveal
        </button>
        <small class="dim">The event log keeps who looked.</small>
        <Problem error={error} />
      </div>
    );
  return (
    <>
      <pre class="payload">{layout(text)}</pre>
      <p class="dim">
        {number(new Blob([text]).size)} bytes <Copy text={text} says="copy bytes as they are" />
      </p>
      {versions.length > 1 && (
        <ol class="lines">
          {versions.map(({ n, at, actor, why }) => (
            <li key={n}>
              version {n}, <When at={at} /> {actor && `by ${actor}`} {why && <q>{why}</q>}
            </li>
          ))}
        </ol>
      )}
    </>
  );
}

function All({ of: job }: { of: WireJobWithHistory }) {
  return (
    <Facts
      of={[
        ["Id", <span class="mono">{job.id}</span>],
        ["Queue", job.queue],
        ["Tenant", job.tenant ?? "–"],
        ["Service", job.service ?? "–"],
        ["Group", job.group ?? "–"],
        ["Key", job.key === null ? "–" : line(job.key)],
        ["Priority", decimal(job.priority)],
        ["Attempts", `${number(job.attempts)} of ${number(job.maxAttempts)}`],
        ["Crashes", `${number(job.crashes)} of ${number(job.maxCrashes)}`],
        ["Requeued without using an attempt", number(job.releases)],
        ["Generation", number(job.generation)],
        ["Created", <When at={job.createdAt} />],
        ["Started", <When at={job.startedAt} />],
        ["Ended", <When at={job.finishedAt} />],
        ["Worker", job.worker ?? "–"],
        ["Deadline", job.deadlineMs === null ? "none" : span(job.deadlineMs)],
      ]}
    />
  );
}
