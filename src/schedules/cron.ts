// The ticks of a schedule. The package croner handles cron expressions; it is loaded with the first one, and only here.
import type { Cron } from "croner";
import { RedriveError } from "../core/errors.ts";
import { textOf } from "../core/failure.ts";
import { invalid } from "../core/options.ts";
import { everyTick, type NextTick, type ScheduleDefinition } from "../core/schedule.ts";

type When = Pick<ScheduleDefinition, "cron" | "timezone" | "everyMs">;

const EXPECTED =
  'a cron expression of 5 fields, or 6 with seconds first, such as "*/5 * * * *" or "0 30 8 * * MON-FRI"';
/** Most expressions cached at once; each keeps what it has computed. */
const KEPT_MOST = 2_000;
const kept = new Map<string, NextTick>();

/** The ticks of a schedule; intervals count from the anchor. Throws `invalid_argument` for one that never ticks. */
export async function ticksOf({ cron, timezone, everyMs }: When, anchor: number): Promise<NextTick> {
  if (cron === null) return everyTick(everyMs as number, anchor);
  const name = `${timezone} ${cron}`;
  const known = kept.get(name);
  if (known) return known;
  const ticks = cronTicks((await load()).Cron, cron, timezone ?? "UTC");
  if (kept.size >= KEPT_MOST) kept.clear();
  kept.set(name, ticks);
  return ticks;
}

async function load(): Promise<{ readonly Cron: typeof Cron }> {
  try {
    return await import("croner");
  } catch (cause) {
    const message = `Cron expressions need the package croner, which cannot be loaded: ${textOf(cause)}. Install redrive with its dependencies.`;
    throw new RedriveError("invalid_argument", message, { cause });
  }
}

function cronTicks(make: typeof Cron, cron: string, timezone: string): NextTick {
  checkZone(timezone);
  // A date is not an expression, and `?` would mean another time in every process.
  if (!/^\s*(@\w+|\S+(\s+\S+){4,5})\s*$/.test(cron) || cron.includes("?"))
    throw invalid("cron", EXPECTED, cron, "write one of these");
  let job: Cron;
  try {
    job = new make(cron, { timezone, paused: true, mode: "5-or-6-parts" });
  } catch (error) {
    throw invalid("cron", EXPECTED, cron, `correct it (${textOf(error).replace(/^.*CronPattern: /, "")})`);
  }
  const next: NextTick = (after) => job.nextRun(new Date(after))?.getTime() ?? null;
  if (next(0) === null)
    throw invalid("cron", "an expression that ticks at some time", cron, "choose a day that exists");
  return next;
}

function checkZone(timezone: string): void {
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone });
    if (/^[A-Za-z]/.test(timezone)) return;
  } catch {
    // Reported below.
  }
  throw invalid("timezone", 'the IANA name of a time zone, such as "Europe/Berlin" or "UTC"', timezone, "use one");
}
