// A repair of all letters of a cause by one recipe, a JSON merge patch: what it would do first, then the writing of it.
import { useState } from "preact/hooks";
import type { WireAnswer } from "../../src/http/client.ts";
import { Act, filled } from "../act.tsx";
import { to } from "../address.ts";
import { Empty, Facts, Head, JobLink, Part, Problem, Twin, Waiting } from "../elements.tsx";
import { counted, line, number, quoted } from "../format.ts";
import { tokensOf } from "../json-text.ts";
import { useLoad } from "../live.ts";
import { api, saidOf, session } from "../server.ts";
import { PlanButton } from "./letters.tsx";

type Preview = WireAnswer<"repairs.preview">;

/** The page. */
export function Recipe({ fingerprint }: { fingerprint: string }) {
  const {
    data: cause,
    error,
    again,
  } = useLoad(`cause ${fingerprint}`, (options) => api.causes.get({ fingerprint }, options), ["causes"]);
  const [patch, setPatch] = useState("{\n  \n}");
  const [preview, setPreview] = useState<{ of: string; is: Preview } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [done, setDone] = useState<string | null>(null);
  if (!cause) return <Waiting error={error} again={again} />;
  const isJson = tokensOf(patch) !== null;
  const target = { filter: { fingerprint } };
  const look = async (): Promise<void> => {
    try {
      setPreview({ of: patch, is: await api.repairs.preview({ target, patch }) });
      setProblem(null);
    } catch (said) {
      setProblem(saidOf(said));
    }
  };
  const fresh = preview?.of === patch ? preview.is : null;
  return (
    <>
      <Head
        path={[
          ["Causes", "#/causes"],
          [fingerprint.slice(0, 8), to("causes", fingerprint)],
        ]}
        title={`Repair ${counted(cause.dead, "letter")}`}
        says={line(`${cause.sample.name}: ${cause.sample.message}`)}
      />
      {!session.value?.payloads ? (
        <Empty
          says="A repair needs the right to see payloads."
          command="redrive tokens add NAME --role operator --payloads"
        />
      ) : (
        <div class="columns">
          <Part
            title="Recipe"
            more={<small class="dim">JSON merge patch: sets fields, null removes them, other bytes stay</small>}
          >
            <textarea
              class="payload"
              rows={10}
              spellcheck={false}
              aria-label="Recipe"
              value={patch}
              onInput={({ currentTarget }) => setPatch(currentTarget.value)}
            />
            <p class="row">
              <button type="button" class={fresh ? "" : "main"} disabled={!isJson} onClick={() => void look()}>
                Look what it would do
              </button>
              {fresh && fresh.fits > 0 && (
                <Act
                  label={`Repair ${number(fresh.fits)} of ${number(fresh.letters)}`}
                  kind="main"
                  says={
                    fresh.misfits.count > 0
                      ? `Repairs ${number(fresh.fits)} and leaves ${number(fresh.misfits.count)} that do not fit as they are. The old payloads are kept.`
                      : "The old payloads are kept."
                  }
                  command={() =>
                    `dlq repair --cause ${fingerprint} --patch ${quoted(patch.replaceAll(/\s+/g, " "))}${fresh.misfits.count > 0 ? " --skip-misfits" : ""}`
                  }
                  run={(values) =>
                    api.repairs.make({ target, patch, skipMisfits: fresh.misfits.count > 0, ...filled(values) })
                  }
                  done={(answer: WireAnswer<"repairs.make">) => {
                    const says = `${number(answer.repaired)} repaired, ${number(answer.unchanged)} unchanged, ${number(answer.skipped)} left.`;
                    setDone(says);
                    return says;
                  }}
                />
              )}
            </p>
          </Part>
          <Part title="What it would do">
            <Problem error={problem} />
            {fresh ? <Would of={fresh} /> : <Empty says="Nothing is written before you say so. Look first." />}
            {done !== null && (
              <p class="row good">
                {done} <PlanButton body={{ selection: { fingerprint } }} />
              </p>
            )}
          </Part>
        </div>
      )}
      <Twin of={`dlq repair --cause ${fingerprint} --patch ${quoted(patch.replaceAll(/\s+/g, " "))} --preview`} />
    </>
  );
}

function Would({ of: { letters, fits, unchanged, misfits, losesNumbers, notDead } }: { of: Preview }) {
  return (
    <>
      <Facts
        of={[
          ["Letters", number(letters)],
          ["Fit", number(fits)],
          ["Do not fit", number(misfits.count)],
          ["Unchanged", number(unchanged)],
          ["Lose numbers", `${number(losesNumbers.count)}; a recipe keeps them`],
          notDead > 0 && ["Not dead", number(notDead)],
        ]}
      />
      {misfits.named.length > 0 && (
        <ul class="lines">
          {misfits.named.map(({ id, issue }) => (
            <li key={id}>
              <JobLink id={id} /> {line(issue, 160)}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
