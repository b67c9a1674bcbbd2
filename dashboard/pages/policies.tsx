// What a retry policy does: its delays with their band, and how long an outage its jobs survive. Nothing here is saved.
import { useEffect, useState } from "preact/hooks";
import type { WireInput, WirePolicyPreview } from "../../src/http/client.ts";
import { address, withQuery } from "../address.ts";
import { Copy, Empty, Facts, Head, Part, Problem, Waiting } from "../elements.tsx";
import { number, span } from "../format.ts";
import { useLoad } from "../live.ts";
import { Plot } from "../plots.tsx";
import { api, saidOf } from "../server.ts";

/** The page. */
export function Policies() {
  const types = useLoad("types", (options) => api.types.list({}, options), [], 60_000);
  const chosen = address.value.query.get("type");
  if (!types.data) return <Waiting error={types.error} again={types.again} />;
  return (
    <>
      <Head title="Policies" says="How long jobs go on trying, and which outages they survive." />
      <nav class="tabs" aria-label="Types">
        {types.data.items.map(({ type }) => (
          <a key={type} href={withQuery({ type })} aria-current={type === chosen ? "page" : undefined}>
            {type}
          </a>
        ))}
        <a href={withQuery({ type: null })} aria-current={chosen === null ? "page" : undefined}>
          what if
        </a>
      </nav>
      {chosen === null ? <WhatIf /> : <TypePolicy key={chosen} type={chosen} />}
    </>
  );
}

function TypePolicy({ type }: { type: string }) {
  const { data, error, again } = useLoad(
    `policy ${type}`,
    (options) => api.types.policy({ type }, options),
    [],
    60_000,
  );
  if (!data) return <Waiting error={error} again={again} />;
  const { policy, known, preview } = data;
  return (
    <>
      {!known && (
        <Empty says="This server does not define this type: these are the defaults. The process that defines it may have others." />
      )}
      <Facts
        of={[
          ["Attempts", number(policy.maxAttempts)],
          ["Crashes", number(policy.maxCrashes)],
          ["Backoff", <code>{JSON.stringify(policy.backoff)}</code>],
          ["Timeout", policy.timeoutMs === null ? "none" : span(policy.timeoutMs)],
          ["Deadline", policy.deadlineMs === null ? "none" : span(policy.deadlineMs)],
          ["Stuck after", policy.stuckMs === null ? "–" : span(policy.stuckMs)],
          ["Keeps completed jobs", span(policy.keepFinishedMs)],
          ["Keeps dead letters", span(policy.keepDeadMs)],
        ]}
      />
      <Preview of={preview} />
    </>
  );
}

const CHOICES = {
  kind: ["exponential", "linear", "fixed"],
  jitter: ["full", "equal", "none", "decorrelated"],
} as const;

function WhatIf() {
  const [asked, setAsked] = useState({
    attempts: 10,
    initial: 1,
    multiplier: 3,
    max: 60,
    kind: "exponential",
    jitter: "full",
  });
  const [shown, setShown] = useState<WirePolicyPreview | null>(null);
  const [error, setError] = useState<string | null>(null);
  const { attempts, initial, multiplier, max, kind, jitter } = asked;
  const backoff = {
    kind,
    initial: initial * 1_000,
    ...(kind === "exponential" && { multiplier }),
    ...(kind === "exponential" && jitter !== "none" && { jitter }),
    ...(kind !== "fixed" && { max: max * 60_000 }),
  };
  const text = JSON.stringify({ maxAttempts: attempts, backoff });
  useEffect(() => {
    const timer = setTimeout(() => {
      const body = JSON.parse(text) as WireInput<"policies.preview">;
      api.policies.preview(body).then(
        (answer) => {
          setShown(answer);
          setError(null);
        },
        (problem: unknown) => setError(saidOf(problem)),
      );
    }, 200);
    return () => clearTimeout(timer);
  }, [text]);
  const slider = (name: "attempts" | "initial" | "multiplier" | "max", says: string, least: number, most: number) => (
    <label>
      {says}
      <input
        type="range"
        min={least}
        max={most}
        value={asked[name]}
        onInput={({ currentTarget }) => setAsked({ ...asked, [name]: Number(currentTarget.value) })}
      />
    </label>
  );
  const choice = (name: "kind" | "jitter") => (
    <label>
      {name === "kind" ? "backoff" : "jitter"}
      <select value={asked[name]} onChange={({ currentTarget }) => setAsked({ ...asked, [name]: currentTarget.value })}>
        {CHOICES[name].map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    </label>
  );
  const inner = [`"${initial}s"`, kind === "exponential" ? `multiplier: ${multiplier}` : ""];
  const code = `maxAttempts: ${attempts},\nbackoff: ${kind}({ initial: ${inner[0]}${inner[1] ? `, ${inner[1]}` : ""}${kind === "fixed" ? "" : `, max: "${max}m"`}${kind === "exponential" ? `, jitter: "${jitter}"` : ""} }),`;
  return (
    <>
      <div class="fields">
        {slider("attempts", `attempts ${attempts}`, 1, 30)}
        {slider("initial", `first delay ${span(initial * 1_000)}`, 1, 120)}
        {kind === "exponential" && slider("multiplier", `multiplier ${multiplier}`, 1, 10)}
        {kind !== "fixed" && slider("max", `longest delay ${span(max * 60_000)}`, 1, 600)}
        {choice("kind")}
        {kind === "exponential" && choice("jitter")}
      </div>
      <Problem error={error} />
      {shown && <Preview of={shown} />}
      <Part title="As code" more={<Copy text={code} />}>
        <pre class="payload">{code}</pre>
      </Part>
    </>
  );
}

function Preview({ of: { delays, cover, custom, deadlineMs } }: { of: WirePolicyPreview }) {
  if (custom) return <Empty says="A function of the program makes these delays: only the program knows them." />;
  return (
    <>
      {cover && (
        <p class="lead">
          Survives an outage of {span(cover.p50Ms)} in the middle case; in 19 of 20 cases {span(cover.p5Ms)}; in 1 of 20
          as much as {span(cover.p95Ms)}.{deadlineMs !== null && ` Its deadline is ${span(deadlineMs)}.`}
        </p>
      )}
      {delays.length === 0 ? (
        <Empty says="It never retries." />
      ) : (
        <Part title="Delays after each attempt" more={<small class="dim">band: shortest to longest</small>}>
          <Plot
            says={`Delays after ${delays.length} attempts, from ${span(delays[0]?.midMs ?? 0)} to ${span(delays.at(-1)?.midMs ?? 0)} in the middle`}
            data={{
              at: delays.map(({ attempt }) => attempt),
              isTime: false,
              isLog: true,
              shown: (ms) => (ms > 0 ? span(ms, 1) : "0"),
              lines: [
                { says: "", kind: "band", values: delays.map(({ lowMs }) => Math.max(1, lowMs)) },
                { says: "", kind: "band", values: delays.map(({ highMs }) => Math.max(1, highMs)), isBand: true },
                { says: "middle", kind: "running", values: delays.map(({ midMs }) => Math.max(1, midMs)) },
              ],
            }}
          />
        </Part>
      )}
    </>
  );
}
