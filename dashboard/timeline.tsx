// The life of a job on a time axis: waits, runs, failures, and the times when its service was down hatched.
import type { WireJobWithHistory } from "../src/http/client.ts";
import { Part } from "./elements.tsx";
import { clock, now, span } from "./format.ts";
import { useLoad } from "./live.ts";
import { outagesFrom } from "./plots.tsx";
import { api } from "./server.ts";

interface Piece {
  readonly kind: "wait" | "run" | "failed" | "completed" | "parked";
  readonly from: number;
  readonly until: number;
  readonly says: string;
}

function piecesOf(job: WireJobWithHistory, end: number): readonly Piece[] {
  const pieces: Piece[] = [];
  let at = Date.parse(job.createdAt);
  const add = (kind: Piece["kind"], from: number, until: number, what: string): void => {
    if (until > from || kind === "failed") pieces.push({ kind, from, until, says: `${what} ${span(until - from)}` });
  };
  for (const { attempt, startedAt, endedAt } of job.history) {
    const ended = Date.parse(endedAt);
    const started = startedAt === null ? ended : Date.parse(startedAt);
    add("wait", at, started, "waited");
    add("failed", started, ended, `attempt ${attempt} failed after`);
    at = ended;
  }
  if (job.state === "queued") add("wait", at, end, "waits since");
  else if (job.startedAt !== null && Date.parse(job.startedAt) >= at) {
    const started = Date.parse(job.startedAt);
    add("wait", at, started, "waited");
    const until = job.finishedAt === null ? end : Date.parse(job.finishedAt);
    add(
      job.state === "completed" ? "completed" : "run",
      started,
      until,
      job.state === "running" ? "runs since" : "ran",
    );
  }
  return pieces;
}

/** The axis. */
export function Timeline({ job }: { job: WireJobWithHistory }) {
  const events = useLoad(
    job.service === null ? null : `timeline ${job.service}`,
    (options) => api.events.list({ subject: `service:${job.service}`, kind: "breaker.changed", limit: 100 }, options),
    ["control"],
  );
  const begin = Date.parse(job.createdAt);
  const end = job.finishedAt === null ? Math.max(now.value, Date.parse(job.runAt)) : Date.parse(job.finishedAt);
  const whole = Math.max(1, end - begin);
  const x = (ms: number): number => Math.max(0, Math.min(1_000, ((ms - begin) / whole) * 1_000));
  const pieces = piecesOf(job, end);
  if (pieces.length === 0 || end - begin < 100) return null;
  const outages = outagesFrom(events.data?.items ?? [], job.service ?? undefined).filter(
    ({ from, until }) => from < end && (until ?? end) > begin,
  );
  const failed = job.history.length;
  return (
    <Part
      title="Time"
      more={
        <small class="dim">
          {span(end - begin)} from the enqueue to {job.finishedAt === null ? "the next run" : "the end"}
        </small>
      }
    >
      <figure class="timeline">
        <svg
          viewBox="0 0 1000 40"
          preserveAspectRatio="none"
          role="img"
          aria-label={`${failed} failed runs in ${span(end - begin)}`}
        >
          <defs>
            <pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <line x1="0" y1="0" x2="0" y2="8" class="hatch" />
            </pattern>
          </defs>
          <rect x="0" y="14" width="1000" height="12" class="piece-wait" />
          {outages.map(({ from, until, says }) => (
            <rect
              key={from}
              x={x(from)}
              y="4"
              width={Math.max(2, x(until ?? end) - x(from))}
              height="32"
              fill="url(#hatch)"
            >
              <title>{says}</title>
            </rect>
          ))}
          {pieces.map(({ kind, from, until, says }) => (
            <rect
              key={`${kind} ${from}`}
              x={x(from)}
              y={kind === "wait" ? 14 : 8}
              width={Math.max(kind === "wait" ? 0 : 4, x(until) - x(from))}
              height={kind === "wait" ? 12 : 24}
              class={`piece-${kind}`}
            >
              <title>{says}</title>
            </rect>
          ))}
          {job.finishedAt === null && <line x1={x(now.value)} x2={x(now.value)} y1="0" y2="40" class="now" />}
        </svg>
        <figcaption>
          <span>{clock(begin, now.value)}</span>
          <span>
            {[
              failed > 0 ? `${failed} failed` : "",
              outages.length > 0 ? `hatched: ${job.service} was down` : "",
              job.finishedAt === null ? "the line is now" : "",
            ]
              .filter(Boolean)
              .join(" · ")}
          </span>
          <span>{clock(end, now.value)}</span>
        </figcaption>
      </figure>
    </Part>
  );
}
