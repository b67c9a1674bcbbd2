// `redrive events`: the event log. With --json one item for each row; the table has one line for each action, with its
// result, so that an action without an outcome stands out.
import { parseDuration } from "../core/duration.ts";
import { type ActionStep, type LoggedEvent, outcomesIn, stepOf } from "../core/event-log.ts";
import { fieldsFrom } from "../core/options.ts";
import { masked } from "../core/safe-text.ts";
import { type EventFilter } from "../operate/event-log.ts";
import { instantOf } from "../enqueue/new-jobs.ts";
import { eventForm } from "../operate/view-forms.ts";
import type { Redrive } from "../redrive-api.ts";
import { type Cli, defined, examples, type Flags, numeric, textual } from "./command.ts";
import { shortTime } from "./format.ts";
import { stateStyle } from "./paint.ts";
import type { Session } from "./session.ts";
import { type Column, tableText } from "./table.ts";

const NOTES = `
An action of an operator is two events: the intent, and the outcome, which has
the number of the intent. The table shows both as one line. The result
"unknown" is an intent without an outcome: the action is under way, its process
ended, or the store did not answer. Events are kept for 90 days.`;

/** Registers `events`. */
export function register(cli: Cli): void {
  const command = cli.command
    .description("Show what operators did and why, and what workers noticed, newest first.")
    .option("--kind <kind>", "events of this kind, e.g. pause or breaker.changed")
    .option("--actor <name>", "what this person or program did")
    .option("--subject <name>", "what happened to this, e.g. queue:mail or service:pricing")
    .option("--since <time>", "from this time on, or from this long ago, e.g. 2h")
    .option("--limit <n>", "events per page, 1 to 200", "50")
    .option("--cursor <cursor>", "where the previous page ended")
    .addHelpText("after", NOTES);
  examples(command, cli, ["events --since 2h", "events --kind pause --json"]);
  cli.act(command, async (session, _args, flags) => {
    const redrive = await session.openExisting();
    const { items, next } = await redrive.events(await filterOf(flags, redrive));
    const lines = session.json ? [] : await linesOf(items, redrive);
    session.show({ items: items.map(eventForm), next }, () =>
      lines.length === 0 ? "No event matches.\n" : eventsTable(lines, session),
    );
    if (next !== null && !session.json) session.say(`More: add --cursor ${next}`);
  });
}

async function filterOf(flags: Flags, { store }: Redrive): Promise<EventFilter> {
  const since = numeric(flags.since);
  const isSpan = typeof since === "string" && /^(\d+(\.\d+)?[a-z]+)+$/i.test(since);
  const ago = isSpan ? parseDuration(since, "since") : null;
  const at = ago === null && since !== undefined ? instantOf(since, "since") : undefined;
  const from = ago === null ? at : Math.max(0, (await store.control()).now - ago);
  return {
    limit: numeric(flags.limit) ?? 50,
    cursor: textual(flags.cursor) ?? null,
    ...defined({ kind: textual(flags.kind), actor: textual(flags.actor), subject: textual(flags.subject), from }),
  };
}

type Result = Exclude<ActionStep, "intent"> | "unknown";

/** One line of the table; the result is null for what is no action. */
interface Line {
  readonly event: LoggedEvent;
  readonly result: Result | null;
  /** The event with the details: the outcome of an action, where there is one. */
  readonly last: LoggedEvent;
}

/** The events as lines, each action where its intent is; an outcome stands alone where its intent is not here. */
async function linesOf(events: readonly LoggedEvent[], { store }: Redrive): Promise<Line[]> {
  const intents = events.filter((event) => stepOf(event) === "intent").map(({ seq }) => seq);
  const { items } = await store.events({ intents, limit: Math.max(1, intents.length) });
  const outcomes = outcomesIn(items);
  return events.flatMap((event): Line[] => {
    const step = stepOf(event);
    if (step === null) return [{ event, result: null, last: event }];
    if (step !== "intent") return intents.includes(event.intent ?? 0) ? [] : [{ event, result: step, last: event }];
    const outcome = outcomes.get(event.seq);
    return [{ event, result: outcome ? resultOf(outcome) : "unknown", last: outcome ?? event }];
  });
}

function resultOf(outcome: LoggedEvent): Result {
  return stepOf(outcome) === "done" ? "done" : "failed";
}

const COLUMNS: readonly Column[] = [
  { title: "TIME" },
  { title: "KIND" },
  { title: "ACTOR", least: 8 },
  { title: "SUBJECT", least: 8 },
  { title: "RESULT" },
  { title: "WHY", least: 8 },
  { title: "DETAILS", least: 12, optional: true },
];

function eventsTable(lines: readonly Line[], { width, paint }: Session): string {
  const rows = lines.map(({ event, result, last }) => [
    shortTime(event.at),
    event.kind,
    event.actor ?? "-",
    event.subject ?? "-",
    result === null ? "" : { text: result, style: stateStyle(result) },
    masked(event.why ?? ""),
    masked(detailsOf(event, last)),
  ]);
  return tableText(COLUMNS, rows, { width, paint });
}

/** The details of an event and of its outcome in words: `filter {"type":"mail"}, redriven 12`. */
function detailsOf(event: LoggedEvent, last: LoggedEvent): string {
  const { step: _step, ...rest } = { ...fieldsFrom(event.value), ...fieldsFrom(last.value) };
  return Object.entries(rest)
    .filter(([, field]) => field !== null && field !== "")
    .map(([name, field]) => `${name} ${typeof field === "string" ? field : JSON.stringify(field)}`)
    .join(", ");
}
