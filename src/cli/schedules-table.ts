// Schedules and upkeep as a table.
import { formatDuration } from "../core/duration.ts";
import type { AnyScheduleView } from "../schedules/schedule-views.ts";
import { stateStyle } from "./paint.ts";
import type { Session } from "./session.ts";
import { type Column, tableText } from "./table.ts";
import { relativeTime } from "./format.ts";

const COLUMNS: readonly Column[] = [
  { title: "NAME", least: 12 },
  { title: "WHEN", least: 10 },
  { title: "NEXT" },
  { title: "AT", optional: true },
  { title: "LAST" },
  { title: "TOOK", align: "right", optional: true },
  { title: "RESULT", least: 6 },
  { title: "LAST JOB", least: 8, optional: true },
];

/** The table; the upkeep services stand below the schedules. */
export function schedulesTable(views: readonly AnyScheduleView[], now: number, { width, paint }: Session): string {
  const rows = views.map((view) => [
    view.kind === "schedule" ? view.name : `upkeep: ${view.name}`,
    whenOf(view),
    nextOf(view, now),
    view.nextAt === null ? "" : zonedTime(view.nextAt, view.kind === "schedule" ? view.timezone : null),
    relativeTime(view.lastAt, now),
    view.lastMs === null ? "" : formatDuration(view.lastMs),
    resultOf(view),
    view.kind === "schedule" ? (view.lastJob ?? "") : "",
  ]);
  return tableText(COLUMNS, rows, { width, paint });
}

function whenOf(view: AnyScheduleView): string {
  if (view.kind === "schedule" && view.cron !== null) return `${view.cron} ${view.timezone ?? ""}`.trim();
  // Upkeep adds a random part to its interval.
  return `${view.kind === "upkeep" ? "about " : ""}every ${formatDuration(view.everyMs ?? 0)}`;
}

/** A tick counts as late only after this: a worker may be about to decide it. */
const LATE_MS = 2_000;

function nextOf(view: AnyScheduleView, now: number): string {
  if (view.kind === "schedule" && view.paused) return "paused";
  if (view.nextAt === null) return view.kind === "upkeep" ? "no worker does it" : "never";
  return now - view.nextAt > LATE_MS ? `${formatDuration(now - view.nextAt)} late` : relativeTime(view.nextAt, now);
}

function resultOf(view: AnyScheduleView): { text: string; style: ReturnType<typeof stateStyle> } {
  const error = view.kind === "upkeep" && view.error !== null ? `: ${view.error}` : "";
  return { text: `${view.result ?? ""}${error}`, style: stateStyle(view.result ?? "") };
}

const FORMAT = {
  year: "numeric",
  month: "2-digit",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short",
} as const;
/** Kept, because making a formatter takes longer than writing a table. */
const formats = new Map<string, Intl.DateTimeFormat>();

/** `2027-01-31 08:00:00 GMT+1`: a time in its own zone. */
export function zonedTime(ms: number, timezone: string | null): string {
  const timeZone = timezone ?? "UTC";
  const format = formats.get(timeZone) ?? new Intl.DateTimeFormat("en-GB", { timeZone, ...FORMAT });
  formats.set(timeZone, format);
  const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, value]));
  const of = (type: Intl.DateTimeFormatPartTypes): string => parts.get(type) ?? "";
  return `${of("year")}-${of("month")}-${of("day")} ${of("hour")}:${of("minute")}:${of("second")} ${of("timeZoneName")}`;
}
