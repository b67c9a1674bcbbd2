// A redrive run as it goes: its steps, what became of what was sent, why it stopped and which job made it stop, and what to
// do now.
import { useRef } from "preact/hooks";
import type { WireRun } from "../../src/http/client.ts";
import { Act, filled } from "../act.tsx";
import { to, toWith } from "../address.ts";
import { Copy, Empty, Facts, Head, Meter, Part, Problem, State, Twin, Waiting, When } from "../elements.tsx";
import { counted, decimal, line, now, number, percent, span } from "../format.ts";
import { useLoad } from "../live.ts";
import { Plot } from "../plots.tsx";
import { api, may } from "../server.ts";
import { Doings } from "./events.tsx";
import { PlanButton } from "./letters.tsx";

const isOpen = ({ state }: WireRun): boolean => state === "running" || state === "paused";

/** The page. */
export function Redrive({ id }: { id: string }) {
  const {
    data: run,
    error,
    status,
    again,
  } = useLoad(
    `redrive ${id}`,
    (options) => api.redrives.get({ id }, options),
    ["redrives", "jobs", "flow", "control"],
    3_000,
  );
  const path = [["Redrives", "#/redrives"]] as const;
  if (!run)
    return status === 404 ? (
      <>
        <Head path={path} title={id} />
        <Empty says="There is no such run. Runs are kept as long as their letters." />
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
            Redrive <small class="mono">{id}</small>{" "}
            <State of={run.state} as={run.state === "stopped" ? "dead" : run.state} />
          </>
        }
        says={
          <>
            started by {run.by} <When at={run.startedAt} />
            {run.why && (
              <>
                {" "}
                <q>{run.why}</q>
              </>
            )}
          </>
        }
      >
        <Actions run={run} again={again} />
      </Head>
      <Problem error={error} hasData again={again} />
      <Steps run={run} />
      {run.state === "running" && run.waits && (
        <p class="triage is-wait">
          <b>Waiting:</b> {run.waits} {run.waitsUntil && <When at={run.waitsUntil} />}
        </p>
      )}
      {run.state !== "running" && <Ended run={run} />}
      <Speed run={run} />
      <Part title="What became of the letters">
        <Facts
          of={[
            ["Planned", `${number(run.toSend)} of ${counted(run.count, "letter")}`],
            ["Sent", number(run.sent)],
            [
              "Completed",
              <a href={toWith(["dead-letters"], { redrive: id, outcome: "completed" })}>{number(run.completed)}</a>,
            ],
            [
              "Failed",
              run.failed === 0 ? (
                "0"
              ) : (
                <a href={toWith(["dead-letters"], { redrive: id, outcome: "dead" })}>{number(run.failed)}</a>
              ),
            ],
            ["Not run yet", number(run.pending)],
            ["Recalled", number(run.recalled)],
            ["Cancelled or gone", number(run.cancelled + run.gone)],
            ["Not sent", number(run.left)],
            run.byOthers > 0 && ["Sent by others meanwhile", number(run.byOthers)],
            run.newDeaths !== null && ["New deaths of this cause since", number(run.newDeaths)],
            ["Rate", `${decimal(run.rate)}/s at most`],
            ["Judges a step within", span(run.judgeWithinMs)],
            ["Tolerates", percent(run.tolerate)],
          ]}
        />
      </Part>
      <Doings subject={`redrive:${id}`} most={8} title="What people did" />
      <Twin of={`redrives show ${id}`} />
    </>
  );
}

function Actions({ run, again }: { run: WireRun; again: () => void }) {
  const { id, state, pending, left } = run;
  const act = (verb: "pause" | "resume" | "cancel" | "recall") => (values: Readonly<Record<string, string>>) =>
    api.redrives[verb]({ id, ...filled(values) }).then(again);
  return (
    <>
      {state === "running" && (
        <Act
          label="Pause"
          says="Sends nothing more until it is resumed. What was sent runs."
          command={() => `redrives pause ${id}`}
          run={act("pause")}
        />
      )}
      {state === "paused" && (
        <Act
          label="Resume"
          kind="main"
          says="Goes on where it was."
          command={() => `redrives resume ${id}`}
          run={act("resume")}
        />
      )}
      {isOpen(run) && (
        <Act
          label="Cancel"
          says={`Ends the run: ${counted(left, "letter")} not sent, dead as before.`}
          command={() => `redrives cancel ${id}`}
          run={act("cancel")}
        />
      )}
      {(isOpen(run) || pending > 0) && (
        <Act
          label={`Recall ${number(pending)} not taken`}
          kind="danger"
          says="Ends the run, and takes back what was sent and no worker has taken: these jobs are dead again, as before."
          command={() => `redrives recall ${id}`}
          run={act("recall")}
          off={pending === 0 ? "Workers have taken everything that was sent." : null}
        />
      )}
      <Copy text={() => markdownOf(run)} says="copy as Markdown" />
    </>
  );
}

function markdownOf({
  id,
  state,
  by,
  why,
  startedAt,
  endedAt,
  toSend,
  completed,
  failed,
  recalled,
  reason,
}: WireRun): string {
  return [
    `**Redrive [${id}](${location.href})**: ${state}`,
    "",
    `- started by ${by} at ${startedAt}${why ? `: ${why}` : ""}${endedAt ? `; ended ${endedAt}` : ""}`,
    `- ${number(completed)} of ${number(toSend)} completed, ${number(failed)} failed, ${number(recalled)} recalled`,
    ...(reason ? [`- ${reason}`] : []),
    "",
  ].join("\n");
}

/** The steps: those done, the present one with its jobs, the rest. */
function Steps({ run }: { run: WireRun }) {
  const { steps, step, toSend, sent, completed, failed, state } = run;
  const rest = toSend - steps.reduce((sum, size) => sum + size, 0);
  const sizes = rest > 0 ? [...steps, rest] : steps;
  let before = 0;
  return (
    <ol class="steps">
      {sizes.map((size, at) => {
        const name = at < steps.length ? `canary ${number(size)}` : `rest ${number(size)}`;
        const isDone = state === "completed" || at < step;
        const isNow = at === step && !isDone;
        const from = before;
        before += size;
        const own = Math.max(0, Math.min(size, completed + failed - from));
        const says = isDone
          ? "passed"
          : isNow
            ? `${number(Math.max(0, Math.min(size, sent - from)))} sent, ${number(own)} ran`
            : "not begun";
        return (
          <li key={name} class={isDone ? "done" : isNow ? "now" : ""} aria-current={isNow ? "step" : undefined}>
            <b>
              {isDone ? "✓" : isNow ? (state === "stopped" ? "✕" : "▶") : "○"} {name}
            </b>
            <Meter share={size === 0 ? 1 : isDone ? 1 : own / size} says={says} />
          </li>
        );
      })}
    </ol>
  );
}

/** Why it ended, the job that made it end, and what to do now. */
function Ended({ run }: { run: WireRun }) {
  const { id, state, reason, left, selection } = run;
  const isBad = state === "stopped" || state === "paused";
  const failed = useLoad(
    isBad ? `failed of ${id}` : null,
    async (options) => {
      const ask = (outcome: "dead" | "failing") =>
        api.letters.list({ redrive: id, outcome, limit: 5, payloads: false }, options);
      const [dead, failing] = await Promise.all([ask("dead"), ask("failing")]);
      return [...dead.items, ...failing.items];
    },
    ["jobs", "redrives"],
  );
  const fingerprint = selection["fingerprint"];
  const first = failed.data?.[0] ?? null;
  return (
    <div class={`ended is-${state}`}>
      <p class="lead">
        <b>
          {state === "completed"
            ? "Completed."
            : state === "stopped"
              ? "Stopped by itself:"
              : state === "paused"
                ? "Paused:"
                : "Cancelled:"}
        </b>{" "}
        {reason ? `${reason}.` : state === "completed" ? `${counted(run.completed, "job")} completed.` : ""}{" "}
        {left > 0 && `${counted(left, "letter")} not sent: dead as before.`}
      </p>
      {first && (
        <p>
          <a class="lead" href={to("jobs", first.id)}>
            {first.type}: {line(`${first.failure.name}: ${first.failure.message}`, 140)}
          </a>
          {first.history.at(-1)?.release && <span class="dim"> on release {first.history.at(-1)?.release}</span>}
        </p>
      )}
      {state !== "completed" && (
        <p class="row">
          <span class="dim">What now:</span>
          {first && (
            <a class="button main" href={to("jobs", first.id)}>
              Look at the job
            </a>
          )}
          {may("operator") && typeof fingerprint === "string" && (
            <>
              <a class="button" href={to("recipe", fingerprint)}>
                Repair all
              </a>
              {state !== "paused" && <PlanButton body={{ selection: { fingerprint } }} says="Plan again" kind="" />}
            </>
          )}
        </p>
      )}
    </div>
  );
}

interface Point {
  readonly at: number;
  readonly sent: number;
  readonly completed: number;
  readonly failed: number;
}

const MOST = 600;

/** What was sent and what it became while this page looked. */
function Speed({ run }: { run: WireRun }) {
  const points = useRef<Point[]>([]);
  const last = points.current.at(-1);
  const { sent, completed, failed } = run;
  const at = Math.floor(now.value / 1_000) * 1_000;
  if (!last || (last.at < at && isOpen(run)))
    points.current = [...points.current, { at, sent, completed, failed }].slice(-MOST);
  const shown = points.current;
  if (shown.length < 3) return null;
  return (
    <Part title="While you look" more={<small class="dim">sums; {decimal(run.rate)}/s at most</small>}>
      <Plot
        says={`${number(sent)} sent, ${number(completed)} completed, ${number(failed)} failed`}
        height={130}
        data={{
          at: shown.map((point) => point.at),
          lines: [
            { says: "sent", kind: "running", values: shown.map((point) => point.sent), dash: [2, 2] },
            { says: "completed", kind: "completed", values: shown.map((point) => point.completed) },
            { says: "failed", kind: "dead", values: shown.map((point) => point.failed), dash: [6, 3] },
          ],
        }}
      />
    </Part>
  );
}
