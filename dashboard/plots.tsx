// The plots as elements: their data as a table for readers who do not see them, and a key with dash and colour. The code
// that draws is a chunk of its own, fetched when the first plot is shown.
import { useEffect, useRef } from "preact/hooks";
import type { WireEvent, WireOverview } from "../src/http/client.ts";
import { now } from "./format.ts";
import type { PlotData } from "./plot.ts";

const SHAPE: Readonly<Record<string, readonly number[]>> = { failed: [6, 3], dead: [2, 2], retrying: [6, 3] };

/** A plot. */
export function Plot({ data, says, height = 170 }: { data: PlotData; says: string; height?: number }) {
  const room = useRef<HTMLDivElement>(null);
  const drawn = useRef<{ again: (data: PlotData) => void; end: () => void } | null>(null);
  const last = useRef(data);
  last.current = data;
  useEffect(() => {
    let isGone = false;
    void import("./plot.ts").then(({ drawPlot }) => {
      if (!isGone && room.current) drawn.current = drawPlot(room.current, last.current, height);
    });
    return () => {
      isGone = true;
      drawn.current?.end();
      drawn.current = null;
    };
  }, []);
  const text = JSON.stringify(data);
  useEffect(() => drawn.current?.again(last.current), [text]);
  return (
    <figure class="plot">
      <div ref={room} class={`room high-${height}`} role="img" aria-label={says} />
      <figcaption>
        {data.lines
          .filter((each) => each.says !== "")
          .map(({ says: name, kind, dash }) => (
            <span key={name}>
              <svg viewBox="0 0 24 6" aria-hidden="true" class={`is-${kind}`}>
                <line x1="0" y1="3" x2="24" y2="3" stroke-dasharray={dash?.join(" ")} />
              </svg>
              {name}
            </span>
          ))}
        {(data.outages ?? []).length > 0 && (
          <span>
            <i class="shade" aria-hidden="true" /> {[...new Set(data.outages?.map((each) => each.says))].join(", ")}
          </span>
        )}
      </figcaption>
    </figure>
  );
}

/** When the breakers of services were open, from the rows of the event log (newest first). */
export function outagesFrom(events: readonly WireEvent[], service?: string): NonNullable<PlotData["outages"]> {
  const found: { from: number; until: number | null; says: string }[] = [];
  const open = new Map<string, { from: number; until: number | null; says: string }>();
  for (const { kind, subject, at, value } of events.toReversed()) {
    if (kind !== "breaker.changed" || subject === null) continue;
    const name = subject.slice(8);
    if (service !== undefined && name !== service) continue;
    const { before, after } = value as { before?: string; after?: string };
    const isDown = after === "open" || after === "isolated" || after === "half_open";
    const known = open.get(name);
    if (isDown && !known) {
      const span = { from: Date.parse(at), until: null, says: `${name} down` };
      open.set(name, span);
      found.push(span);
    } else if (!isDown && known) {
      known.until = Date.parse(at);
      open.delete(name);
    } else if (!isDown && before !== undefined && before !== "closed")
      // It was down before the first event that is known.
      found.push({ from: 0, until: Date.parse(at), says: `${name} down` });
  }
  return found;
}

/** The last hour of the whole queue. */
export function FlowPlot({ overview, events }: { overview: WireOverview; events: readonly WireEvent[] }) {
  const { flow, releases, services } = overview;
  const ended = outagesFrom(events);
  const still = services
    .filter(
      ({ state, since, service }) =>
        state !== "closed" &&
        since !== null &&
        !ended.some((each) => each.until === null && each.says.startsWith(service)),
    )
    .map(({ service, since }) => ({ from: Date.parse(since ?? ""), until: null, says: `${service} down` }));
  const data: PlotData = {
    at: flow.map(({ at }) => Date.parse(at)),
    lines: [
      { says: "completed", kind: "completed", values: flow.map(({ completed }) => completed) },
      { says: "retried", kind: "retrying", values: flow.map(({ retried }) => retried), dash: SHAPE["retrying"] ?? [] },
      { says: "dead", kind: "dead", values: flow.map(({ dead }) => dead), dash: SHAPE["dead"] ?? [] },
    ],
    outages: [...ended, ...still].filter(({ until }) => until === null || until > now.value - 3_600_000),
    marks: releases.map(({ release, at }) => ({ at: Date.parse(at), says: release })),
  };
  const sum = (name: "completed" | "retried" | "dead"): number => flow.reduce((total, point) => total + point[name], 0);
  const says = `In the last 60 minutes ${sum("completed")} jobs completed, ${sum("retried")} runs failed and were retried, ${sum("dead")} jobs died.`;
  return <Plot data={data} says={says} />;
}
