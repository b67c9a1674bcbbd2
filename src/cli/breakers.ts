// `redrive breakers`: shows the breakers of services, which hold for the whole fleet, and changes them by hand.
import { BREAKER_WORDS } from "../core/service-record.ts";
import { parseDuration } from "../core/duration.ts";
import { JOB_BOUNDS } from "../core/new-job.ts";
import { didYouMean } from "../core/options.ts";
import { RedriveError } from "../core/errors.ts";
import type { BreakerView } from "../operate/breakers.ts";
import { breakerForm } from "../operate/view-forms.ts";
import type { Redrive } from "../redrive-api.ts";
import { type Cli, defined, examples, textual, whyFlag, whyOf } from "./command.ts";
import { stateStyle } from "./paint.ts";
import { safeLine } from "../core/safe-text.ts";
import type { Session } from "./session.ts";
import { tableOf } from "./table.ts";
import { relativeTime } from "./format.ts";

/** Registers `breakers`. */
export function register(cli: Cli): void {
  const breakers = cli.command;
  const list = breakers.command("list").description("list every known service");
  examples(list, cli, ["breakers list", "breakers list --json"]);
  cli.act(list, async (session) => {
    const redrive = await session.openExisting();
    const [views, { now }] = await Promise.all([redrive.breakers.list(), redrive.store.control()]);
    session.show({ items: views.map(breakerForm), next: null }, () =>
      views.length === 0 ? "No service is known yet.\n" : breakersTable(views, now, session),
    );
  });
  const open = breakers
    .command("open")
    .description("hold back all jobs of a service; running jobs continue")
    .argument("<service>", "name of the service")
    .option("--reason <text>", "reason, shown in lists", "opened by hand")
    .option("--for <duration>", "probe the service after this long (default: stay open until closed by hand)");
  whyFlag(open);
  examples(open, cli, ["breakers open pricing --reason 'maintenance' --for 1h"]);
  cli.act(open, async (session, [service = ""], flags) => {
    const span = textual(flags.for);
    if (span !== undefined) parseDuration(span, "for", { minMs: 1, maxMs: JOB_BOUNDS.delayMs });
    const redrive = await session.openExisting();
    const unknown = await unknownService(redrive, service);
    const options = { reason: textual(flags.reason) ?? "", ...defined({ for: span }), ...whyOf(flags) };
    await tell(session, redrive, await redrive.breakers.open(service, options));
    // A warning, not a refusal: the service may belong to work to come. A misspelt name would hold back nothing.
    if (unknown !== null) session.say(`${unknown} The breaker was opened anyway.`);
  });
  for (const verb of ["close", "reset"] as const) {
    const command = breakers
      .command(verb)
      .description(
        verb === "close"
          ? "let the jobs of a service run again; its load rises slowly"
          : "forget everything about a service: breaker closed, full load, no failures counted",
      )
      .argument("<service>", "name of the service");
    whyFlag(command);
    examples(command, cli, [`breakers ${verb} pricing`]);
    cli.act(command, async (session, [service = ""], flags) => {
      const redrive = await session.openExisting();
      const unknown = await unknownService(redrive, service);
      if (unknown !== null) throw new RedriveError("not_found", `${unknown} Nothing was changed.`);
      await tell(session, redrive, await redrive.breakers[verb](service, whyOf(flags)));
    });
  }
}

/** The message for an unknown service; null for one that has a breaker, settings or jobs. */
async function unknownService({ breakers, jobs, store }: Redrive, service: string): Promise<string | null> {
  const [views, { lanes }] = await Promise.all([breakers.list(), store.lanes(null, 1_000)]);
  const due = lanes.flatMap((lane) => (lane.service === null ? [] : [lane.service]));
  const known = [...new Set([...views.map((view) => view.service), ...due])];
  // Throws for an invalid name.
  await breakers.get(service);
  if (known.includes(service) || (await jobs.list({ service, limit: 1 })).items.length > 0) return null;
  const hint = didYouMean(service, known);
  return `No worker, job or breaker knows a service ${JSON.stringify(service)}${hint === "" ? "." : `; ${hint}`}`;
}

async function tell(session: Session, { store }: Redrive, view: BreakerView): Promise<void> {
  const { now } = await store.control();
  const until = view.until === null ? "" : `, probed ${relativeTime(view.until, now)}`;
  const ramp = view.rampUntil === null ? "" : `, at full load ${relativeTime(view.rampUntil, now)}`;
  const by = view.state === "isolated" && view.until === null ? " until it is closed by hand" : "";
  const word = BREAKER_WORDS[view.state];
  session.answer(breakerForm(view), () => `The breaker of ${view.service} is ${word}${by}${until}${ramp}.\n`);
}

function breakersTable(views: readonly BreakerView[], now: number, session: Session): string {
  return tableOf(views, session, [
    { title: "SERVICE", least: 8, of: ({ service }) => service },
    { title: "STATE", of: ({ state }) => ({ text: BREAKER_WORDS[state], style: stateStyle(state) }) },
    { title: "SINCE", of: ({ since }) => (since === 0 ? "-" : relativeTime(since, now)) },
    { title: "CALLS", align: "right", of: ({ calls }) => calls },
    { title: "FAILED", align: "right", of: ({ failures }) => failures },
    { title: "IN A ROW", align: "right", optional: true, of: ({ consecutive }) => consecutive },
    { title: "NEXT", least: 12, of: (view) => nextOf(view, now) },
    { title: "WHY", least: 12, optional: true, of: (view) => safeLine(reasonOf(view)) },
  ]);
}

function nextOf({ state, until, holdUntil, rampUntil, probes }: BreakerView, now: number): string {
  if (holdUntil !== null) return `left alone, on ${relativeTime(holdUntil, now)}`;
  if (state === "half_open") return `${probes} ${probes === 1 ? "probe" : "probes"} under way`;
  if (state !== "closed") return until === null ? "closed by hand" : `probe ${relativeTime(Math.max(until, now), now)}`;
  return rampUntil === null ? "" : `full load ${relativeTime(rampUntil, now)}`;
}

function reasonOf({ reason, sick }: BreakerView): string {
  const few = sick.map(({ worker }) => worker).slice(0, 3);
  const ill = few.length === 0 ? "" : `only these workers fail: ${few.join(", ")}`;
  return [reason ?? "", ill].filter((text) => text !== "").join("; ");
}
