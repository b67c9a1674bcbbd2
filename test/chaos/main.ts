// The program behind `npm run prove -- chaos`: reads its arguments, conducts the run, judges it, prints one line, and
// keeps the histories of a run that broke something.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { conduct, type Course } from "./conductor.ts";
import { type Judgement, judge } from "./judge.ts";
import { SABOTAGES, TOLD } from "./told.ts";

const USAGE = `Usage: npm run prove -- chaos [options]

  --store sqlite      the store (only this one so far)
  --kills N           processes to kill (default 20)
  --pauses M          workers to halt beyond their lease (default a quarter of the kills)
  --seed S            what happens when follows from it (default: a new one)
  --workers W         worker processes (default 4)
  --seconds-limit T   when to stop waiting for kills and pauses (default 60 and 4 for each)
  --judge FOLDER      only judge again what an earlier run left behind
  --keep              keep what the run leaves behind even if all is well
  --sabotage LIST     break actors on purpose: ${SABOTAGES.join(", ")}
`;

/** Problems shown of each kind. */
const SHOWN = 4;

function readArguments() {
  const { values } = parseArgs({
    options: {
      store: { type: "string", default: "sqlite" },
      kills: { type: "string", default: "20" },
      pauses: { type: "string" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
      workers: { type: "string", default: "4" },
      "seconds-limit": { type: "string" },
      judge: { type: "string" },
      keep: { type: "boolean", default: false },
      sabotage: { type: "string", default: "" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    process.exit(0);
  }
  if (values.store !== "sqlite") throw new Error(`--store must be sqlite; got ${values.store}.`);
  for (const name of values.sabotage.split(",").filter(Boolean)) {
    if (!SABOTAGES.some((known) => known === name)) throw new Error(`--sabotage knows no ${name}.`);
  }
  const kills = whole("--kills", values.kills, 0);
  const pauses = whole("--pauses", values.pauses ?? String(Math.ceil(kills / 4)), 0);
  const secondsLimit = whole("--seconds-limit", values["seconds-limit"] ?? String(60 + 4 * (kills + pauses)), 1);
  const { sabotage, keep, judge: again } = values;
  const seed = whole("--seed", values.seed, 0);
  const workers = whole("--workers", values.workers, 2);
  return { kills, pauses, secondsLimit, seed, workers, sabotage, keep, again };
}

function whole(name: string, text: string, least: number): number {
  if (!/^[0-9]{1,9}$/.test(text) || Number(text) < least) {
    throw new Error(`${name} must be a whole number from ${least} to 999999999; got ${text}.`);
  }
  return Number(text);
}

type Asked = ReturnType<typeof readArguments>;

/** Healing, stopping and judging come after the storm; no process may live longer. */
const AFTERMATH_MS = 300_000;

async function run(asked: Asked): Promise<boolean> {
  const startedAt = performance.now();
  const folder = asked.again ?? mkdtempSync(join(tmpdir(), "redrive-chaos-"));
  const environment = {
    folder,
    epoch: String(process.hrtime.bigint()),
    seed: String(asked.seed),
    sabotage: asked.again ? "" : asked.sabotage,
    until: String(Date.now() + asked.secondsLimit * 1_000 + AFTERMATH_MS),
  };
  for (const [what, value] of Object.entries(environment)) process.env[TOLD[what as keyof typeof TOLD]] = value;
  let remove = !asked.again;
  process.once("exit", () => {
    if (remove) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  let good = false;
  try {
    const course = asked.again ? null : await conduct({ ...asked, folder });
    const judgement = await judge(folder);
    const problems = [...judgement.problems, ...(course ? shortcomings(asked, course, judgement) : [])];
    for (const line of some(problems)) process.stdout.write(`${line}\n`);
    process.stdout.write(`${summary(asked, course, judgement, (performance.now() - startedAt) / 1_000)}\n`);
    if (asked.keep || asked.again) process.stdout.write(`longest stuck was job ${judgement.stuckJob}\n`);
    good = problems.length === 0;
  } finally {
    remove &&= good && !asked.keep;
    if (!remove && !asked.again) process.stdout.write(`${remedy(asked, folder)}\n`);
  }
  return good;
}

/** A few problems of every kind; the kind is the first word. */
function some(problems: readonly string[]): string[] {
  const seen = new Map<string, number>();
  const shown = problems.filter((problem) => {
    const kind = problem.split(" ", 1)[0] ?? "";
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
    return (seen.get(kind) ?? 0) <= SHOWN;
  });
  return shown.length === problems.length ? shown : [...shown, `and ${problems.length - shown.length} more`];
}

/** What makes a run worthless although no rule was broken. */
function shortcomings(asked: Asked, course: Course, { report }: Judgement): string[] {
  const found = [...course.troubles];
  if (course.kills < asked.kills) found.push(`only ${course.kills} of ${asked.kills} kills in time`);
  if (course.pauses < asked.pauses) found.push(`only ${course.pauses} of ${asked.pauses} pauses in time`);
  if (asked.pauses > 0 && report.staleRefused === 0) found.push("no stale write was refused, so fencing was not tried");
  return found;
}

function summary({ seed }: Asked, course: Course | null, judgement: Judgement, seconds: number): string {
  const { report, stuckMs, takenBackMs, killed, proven } = judgement;
  const parts = [
    `${report.jobs} jobs`,
    ...(course ? [`${course.kills} kills`, `${course.pauses} pauses`] : []),
    `${report.lost} lost`,
    `${report.doubleAcked} double-acked`,
    `${report.staleRefused} stale refused`,
    `${report.extraRuns} extra runs`,
    `${report.ambiguous} ambiguous`,
    `longest stuck ${(stuckMs / 1_000).toFixed(1)} s (taken back within ${(takenBackMs / 1_000).toFixed(1)} s)`,
    `${killed} deaths by crash, ${proven} with evidence${course ? `, ${course.killedByJobs} workers taken along` : ""}`,
    `${report.events} events`,
    `seed ${seed}`,
    `${seconds.toFixed(0)} s`,
  ];
  return `chaos sqlite  ${parts.join(", ")}`;
}

function remedy({ kills, pauses, seed, workers, sabotage }: Asked, folder: string): string {
  const broken = sabotage === "" ? "" : ` --sabotage ${sabotage}`;
  const again = `npm run prove -- chaos --store sqlite --kills ${kills} --pauses ${pauses} --seed ${seed} --workers ${workers}${broken}`;
  return `Histories, logs and the database are kept in ${folder}\nTo judge them again: npm run prove -- chaos --judge ${folder}\nTo run it again: ${again}`;
}

let asked: Asked | null = null;
try {
  asked = readArguments();
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n\n${USAGE}`);
  process.exit(2);
}
process.exit((await run(asked)) ? 0 : 1);
