// The story: schedules fire, runs hang and die, a person ends one by hand, everything ends, and the books are balanced.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createRedrive, type Redrive } from "redrive";
import { balance, type Day } from "./books.ts";
import { archive, scrape, type Site, SITES } from "./jobs.ts";
import { type Crew, redriveCommand, startCrew } from "./processes.ts";
import { defaults } from "./redrive.config.ts";
import { paint } from "../kit/paint.ts";
import { check, heading, panel, panelDone, quote, tell } from "../kit/screen.ts";

/** How often a site is scraped; steady ones by cron, every second. */
const EVERY: Readonly<Record<Exclude<Site, "steady">, string>> = {
  "hangs-once": "2s",
  "hangs-always": "1h",
  "kills-once": "1h",
  zombie: "1h",
};
const LOOK_MS = 250;
const WORKERS = 2;
const START_MS = 60_000;
/** All tries of a run that always hangs, with much to spare for a busy machine. */
const END_MS = 120_000;
const BY_HAND = "2s";

/** Runs the day; true if its books balance. */
export async function startDay({ store, fireMs }: { store: string; fireMs: number }): Promise<boolean> {
  await using redrive = await createRedrive({ store, jobs: [scrape, archive], defaults, log: "error" });
  const name = `day-${randomUUID().slice(0, 8)}`;
  const day: Day = { name, schedules: new Map(), archived: "", fixed: [], deaths: 0 };
  const began = performance.now();
  const seconds = (): number => (performance.now() - began) / 1_000;
  heading("Scheduled runs on a bad day; an hour is a second or two here");
  const crew = startCrew(store, WORKERS);
  try {
    await staffed(redrive);
    tell(seconds(), "info", "two workers have started");
    await schedule(redrive, day, "kills-once");
    await watch(redrive, day, crew, () => isEnded(redrive, day));
    await staffed(redrive);
    tell(seconds(), "wait", "a run has killed its worker; another has done it, and the worker is back");
    for (const site of SITES) if (site !== "kills-once") await schedule(redrive, day, site);
    day.archived = (await redrive.enqueue(archive, {}, { tenant: name })).id;
    tell(seconds(), "info", `${SITES.length} schedules are set`);
    const until = seconds() * 1_000 + fireMs;
    await watch(redrive, day, crew, () => seconds() * 1_000 >= until);
    for (const each of day.schedules.values()) await redrive.schedules.pause(each);
    tell(seconds(), "info", "the schedules are paused; what was begun goes on");
    await fixByHand(redrive, store, day, seconds);
    const isOver = async (): Promise<boolean> => seconds() * 1_000 > END_MS || (await isEnded(redrive, day));
    await watch(redrive, day, crew, isOver);
    tell(seconds(), "good", "everything has ended");
    await show(redrive, store, day);
  } finally {
    panelDone();
    await crew.stop();
  }
  day.deaths = crew.deaths;
  const checks = await balance(redrive, day);
  for (const each of day.schedules.values()) await redrive.schedules.remove(each);
  heading("The books");
  for (const { ok, text } of checks) check(ok, text);
  return checks.every(({ ok }) => ok);
}

async function schedule(redrive: Redrive, day: Day, site: Site): Promise<void> {
  const name = `${day.name}.${site}`;
  const when = site === "steady" ? { cron: "* * * * * *", timezone: "Europe/Berlin" } : { every: EVERY[site] };
  await redrive.schedules.set(name, { ...when, job: scrape, input: { site }, tenant: day.name });
  // What comes once in an hour begins now.
  if (site !== "steady" && EVERY[site] === "1h") await redrive.schedules.run(name);
  day.schedules.set(site, name);
}

/** Waits until both workers take work. */
async function staffed({ store }: Redrive): Promise<void> {
  for (let waitedMs = 0; waitedMs < START_MS; waitedMs += LOOK_MS) {
    const [workers, { now }] = await Promise.all([store.workers(), store.control()]);
    if (workers.filter(({ givenUp, leaseEnd }) => !givenUp && leaseEnd > now).length >= WORKERS) return;
    await sleep(LOOK_MS);
  }
  throw new Error("The workers did not start; their logs are in the folder data.");
}

/** Shows how things stand, a few times a second, until it is over. */
async function watch(
  redrive: Redrive,
  { name }: Day,
  crew: Crew,
  isOver: () => boolean | Promise<boolean>,
): Promise<void> {
  while (!(await isOver())) {
    const waiting = (await redrive.runs.list({ status: "pending_retry", type: "scrape", limit: 200 })).items;
    const jobs = await redrive.jobs.list({ tenant: name, limit: 200 });
    const count = (state: string): number => jobs.items.filter((job) => job.state === state).length;
    const sums = `${count("running")} running, ${waiting.length} waiting for a retry, ${count("completed")} completed, ${count("dead")} given up, ${crew.deaths} workers died`;
    const lines = waiting.slice(0, 6).map(({ label, errorMessage }) => `  ${label}  ${errorMessage}`);
    panel([sums, ...lines.map((line) => paint("yellow", line))], () => `         ${sums}`);
    await sleep(LOOK_MS);
  }
  panelDone();
}

/** The one job without a limit hangs, and only a person can know. */
async function fixByHand(redrive: Redrive, store: string, day: Day, seconds: () => number): Promise<void> {
  // As long as a person would look at it.
  while ((await redrive.stuck.list({ olderThan: BY_HAND, type: "archive" })).length === 0 && seconds() * 1_000 < END_MS)
    await sleep(LOOK_MS);
  const flags = ["--older-than", BY_HAND, "--type", "archive"];
  heading(`$ redrive stuck fix ${flags.join(" ")} --dry-run`);
  quote(await redriveCommand(store, ["stuck", "fix", ...flags, "--dry-run"]));
  day.fixed = (await redrive.stuck.fix({ olderThan: BY_HAND, type: "archive" })).filter(({ fixed }) => fixed);
  tell(seconds(), "good", `ended by hand: ${day.fixed.map(({ message }) => message).join(", ")}`);
  // Its next try need not wait as long as the others'.
  await redrive.jobs.reschedule(day.archived, { delay: 0 });
}

async function isEnded(redrive: Redrive, { name }: Day): Promise<boolean> {
  // In one look: between two of them a run could end and its retry begin to wait.
  const { items } = await redrive.jobs.list({ tenant: name, limit: 200 });
  return items.every(({ state }) => state !== "queued" && state !== "running");
}

async function show(redrive: Redrive, store: string, day: Day): Promise<void> {
  const view = await redrive.schedules.get(day.schedules.get("hangs-always") ?? "");
  const id = view?.lastJob ?? "";
  heading(`$ redrive jobs history ${id}`);
  quote(await redriveCommand(store, ["jobs", "history", id]));
  heading("$ redrive schedules list");
  quote(await redriveCommand(store, ["schedules", "list"]));
}
