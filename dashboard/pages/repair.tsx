// Another payload for one dead job: the text as its producer sent it, a comparison, what its type says of it, and the bytes
// that will be sent. No parser touches the text, so large numbers stay.
import { useEffect, useState } from "preact/hooks";
import { RedriveHttpError, type WireJobWithHistory } from "../../src/http/client.ts";
import { flag } from "../act.tsx";
import { to } from "../address.ts";
import { commandOf, Copy, Empty, Head, Part, Waiting } from "../elements.tsx";
import { Diff } from "../diff.tsx";
import { line, number, quoted, shortId } from "../format.ts";
import { compact, layout, lineOf, tokensOf } from "../json-text.ts";
import { useLoad } from "../live.ts";
import { api, type PayloadText, payloadOf, saidOf, session } from "../server.ts";
import { PlanButton } from "./letters.tsx";

/** The page. */
export function Repair({ id }: { id: string }) {
  const {
    data: job,
    error,
    again,
  } = useLoad(`job ${id}`, (options) => api.jobs.get({ id, payloads: false }, options), ["jobs"]);
  const mayRead = session.value?.payloads === true;
  const original = useLoad(mayRead ? `payload ${id}` : null, () => payloadOf(id), [], 3_600_000);
  if (!job) return <Waiting error={error} again={again} />;
  return (
    <>
      <Head
        path={[
          ["Jobs", "#/jobs"],
          [shortId(id), to("jobs", id)],
        ]}
        title={`Repair ${job.type}`}
        says={job.failure ? line(`${job.failure.name}: ${job.failure.message}`) : "This job has not failed."}
      />
      {!mayRead ? (
        <Empty
          says="A repair needs the right to see payloads."
          command="redrive tokens add NAME --role operator --payloads"
        />
      ) : job.state !== "dead" ? (
        <Empty says={`This job is ${job.shown}: only dead jobs are repaired.`}>
          <a href={to("jobs", id)}>its page ›</a>
        </Empty>
      ) : !original.data ? (
        <Waiting error={original.error} again={original.again} />
      ) : (
        <Editor key={original.data.text} job={job} original={original.data} />
      )}
    </>
  );
}

/** What the type says of a payload, by the line of the laid-out text. */
function issuesOf(error: unknown, text: string): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  if (!(error instanceof RedriveHttpError)) return found;
  const issues = error.details["issues"];
  if (Array.isArray(issues))
    for (const { path, message } of issues as readonly { path: string; message: string }[])
      found.set(lineOf(text, path), path === "" ? message : `${path}: ${message}`);
  return found;
}

function Editor({ job, original: { text: original, etag } }: { job: WireJobWithHistory; original: PayloadText }) {
  const { id, failure } = job;
  const before = layout(original);
  const [text, setText] = useState(before);
  const [why, setWhy] = useState("");
  const [said, setSaid] = useState<{ text: string; isGood: boolean } | null>(null);
  const [issues, setIssues] = useState<ReadonlyMap<number, string>>(new Map());
  const [isSaved, setSaved] = useState(false);
  // As the producer wrote it: without spaces, unless the original had them.
  const bytes = compact(original) === original ? compact(text) : text === before ? original : text;
  const isJson = tokensOf(text) !== null;
  const isChanged = compact(text) !== compact(original);
  useEffect(() => setIssues(new Map()), [text]);
  const attempt = async (isCheck: boolean): Promise<void> => {
    try {
      await api.jobs.edit(
        { id, payload: bytes, ...(isCheck && { dryRun: true }), ...(why !== "" && { why }) },
        { ifMatch: etag },
      );
      setIssues(new Map());
      setSaid({ text: isCheck ? "It fits." : "Saved. The old payload is kept.", isGood: true });
      if (!isCheck) setSaved(true);
    } catch (error) {
      setIssues(issuesOf(error, layout(text)));
      setSaid({ text: saidOf(error), isGood: false });
    }
  };
  const command = commandOf(`dlq edit ${id} --payload ${quoted(bytes)}${flag("why", why)}`);
  return (
    <>
      <div class="columns">
        <Part title="Yours" more={<small class="dim">{number(new Blob([bytes]).size)} bytes will be sent</small>}>
          <textarea
            class="payload"
            aria-label="Payload"
            spellcheck={false}
            rows={Math.min(30, Math.max(8, text.split("\n").length + 1))}
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </Part>
        <Part title="What changes">
          {isChanged ? (
            <Diff before={before} after={layout(text)} issues={issues} />
          ) : (
            <Empty says="Nothing yet. Change the text on the left." />
          )}
        </Part>
      </div>
      {!isJson && <p class="problem">This is no JSON yet.</p>}
      {said && (
        <p class={said.isGood ? "good" : "problem"} role="status">
          {said.text}
        </p>
      )}
      {isSaved ? (
        <p class="row">
          {failure && (
            <PlanButton body={{ selection: { fingerprint: failure.fingerprint } }} says="Plan redrive of this cause" />
          )}
          <PlanButton body={{ selection: { ids: [id] } }} says="only this job" kind="" />
          <a class="button quiet" href={to("jobs", id)}>
            back to the job
          </a>
        </p>
      ) : (
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            void attempt(false);
          }}
        >
          <label class="grow">
            Why, for the event log
            <input value={why} onInput={({ currentTarget }) => setWhy(currentTarget.value)} />
          </label>
          <button type="button" disabled={!isJson} onClick={() => void attempt(true)}>
            Check
          </button>
          <button type="submit" class="main" disabled={!isJson || !isChanged}>
            Save
          </button>
        </form>
      )}
      {failure && (
        <p class="dim">
          Do others need the same?{" "}
          <a href={to("recipe", failure.fingerprint)}>Repair all letters of this cause by a recipe ›</a>
        </p>
      )}
      <div class="twin">
        <code>$ {command}</code> <Copy text={command} k="y" />
      </div>
    </>
  );
}
