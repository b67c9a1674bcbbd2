// A plan: what a redrive would send, what speaks against it, how fast, what the canary proves; and the button that starts it.
import { useState } from "preact/hooks";
import type { WirePlan } from "../../src/http/client.ts";
import { flag } from "../act.tsx";
import { go, to } from "../address.ts";
import { commandOf, Copy, Empty, Facts, Head, Part, Problem, Waiting } from "../elements.tsx";
import { counted, decimal, now, number, percent, span } from "../format.ts";
import { useLoad } from "../live.ts";
import { api, may, saidOf } from "../server.ts";

/** The page. */
export function Plan({ id }: { id: string }) {
  const {
    data: plan,
    error,
    status,
    again,
  } = useLoad(`plan ${id}`, (options) => api.plans.get({ id }, options), [], 60_000);
  if (!plan)
    return status === 404 ? (
      <>
        <Head path={[["Redrives", "#/redrives"]]} title={id} />
        <Empty says="There is no such plan any more: plans are good for 15 minutes. Make another from its cause." />
      </>
    ) : (
      <Waiting error={error} again={again} />
    );
  return (
    <>
      <Head
        path={[["Redrives", "#/redrives"]]}
        title={`Plan: ${counted(plan.count, "dead letter")} → ${number(plan.toSend)} to send`}
        says="A plan changes no job. Look at the warnings, choose the steps, then start."
      />
      <Problem error={error} hasData again={again} />
      <div class="columns">
        <Part title="What it sends">
          {plan.warnings.length > 0 && (
            <ul class="warnings">
              {plan.warnings.map(({ kind, count, text }) => (
                <li key={`${kind} ${text}`}>
                  <b>!</b> {text} {count > 1 && <small class="dim">({number(count)})</small>}
                </li>
              ))}
            </ul>
          )}
          <Facts
            of={[
              ["Types", namesOf(plan.types)],
              ["Services", namesOf(plan.services)],
              ["Tenants", number(plan.tenants)],
              ["Groups", number(plan.groups)],
              ["Planned by", plan.by],
            ]}
          />
        </Part>
        <Part title="How">
          {plan.started === null ? (
            <Start plan={plan} />
          ) : (
            <p>
              It is started: <a href={to("redrives", plan.started)}>{plan.started}</a>
            </p>
          )}
        </Part>
      </div>
    </>
  );
}

const namesOf = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, n]) => `${name || "none"} ${number(n)}`)
    .join(", ") || "–";

/** How large a share of failing jobs so many good ones rule out, with 95 in 100. */
const provenBy = (good: number): number => 1 - 0.05 ** (1 / good);

const stepsOf = (text: string): readonly number[] =>
  text
    .split(/[\s,]+/)
    .map(Number)
    .filter((n) => Number.isInteger(n) && n > 0);

function Start({ plan }: { plan: WirePlan }) {
  const [values, setValues] = useState({
    steps: "5, 50",
    rate: decimal(plan.rate).replaceAll(",", ""),
    within: "",
    tolerate: "",
    why: "",
  });
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const steps = stepsOf(values.steps);
  const left = Date.parse(plan.expiresAt) - now.value;
  const canary = steps.length === 0 ? ("none" as const) : [...steps];
  const share = values.tolerate === "" ? undefined : Number(values.tolerate.replace("%", "")) / 100;
  const command = commandOf(
    `start ${plan.id} --canary ${steps.length === 0 ? "none" : steps.join(",")}${flag("rate", values.rate)}${flag("judge-within", values.within)}${flag("tolerate", values.tolerate === "" ? "" : `${values.tolerate.replace("%", "")}%`)}${flag("why", values.why)}`,
  );
  const start = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      const { id } = await api.redrives.start({
        id: plan.run,
        canary,
        rate: Number(values.rate),
        ...(values.within !== "" && { judgeWithin: values.within }),
        ...(share !== undefined && { tolerate: share }),
        ...(values.why !== "" && { why: values.why }),
      });
      go(to("redrives", id));
    } catch (problem) {
      setError(saidOf(problem));
      setBusy(false);
    }
  };
  const field = (name: keyof typeof values, says: string, hint = "") => (
    <label>
      {says}
      <input
        value={values[name]}
        placeholder={hint}
        onInput={({ currentTarget }) => setValues({ ...values, [name]: currentTarget.value })}
      />
    </label>
  );
  const rate = Number(values.rate);
  return (
    <form class="start" onSubmit={(event) => void start(event)}>
      <div class="fields">
        {field("steps", "Canary steps, then the rest", "none")}
        {field("rate", "Letters a second, at most")}
        {field("within", "Judge a step within", "10 × the timeout")}
        {field("tolerate", "Tolerate failing the same way", "0 %")}
      </div>
      {field("why", "Why, for the event log", "the service is back")}
      <p class="dim">
        {plan.rateBecause}. {rate > 0 && `About ${span((plan.toSend / rate) * 1_000)}.`}
      </p>
      {steps.length > 0 ? (
        <p class="proves">
          It proves:{" "}
          {steps
            .map(
              (good) => `${number(good)} good: at most ${percent(Math.round(provenBy(good) * 1_000) / 1_000)} failing`,
            )
            .join(" · ")}
        </p>
      ) : (
        <p class="problem">Without a canary everything is sent at once, and nothing is proved before.</p>
      )}
      <Problem error={error} />
      <div class="row">
        <button type="submit" class="main" disabled={isBusy || left <= 0 || !may("operator") || plan.toSend === 0}>
          Start {number(plan.toSend)} of {number(plan.count)} {steps.length > 0 ? "with canary" : "without canary"}
        </button>
        <span class="dim">{left > 0 ? `good for ${span(left)}` : "It is over; make another from its cause."}</span>
      </div>
      <div class="twin">
        <code>$ {command}</code> <Copy text={command} k="y" />
      </div>
    </form>
  );
}
