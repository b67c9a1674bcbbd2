// The program behind `npm run prove -- chaos`: reads its arguments, conducts the run, judges it, prints one line, and
// keeps the histories of a run that broke something.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { conduct, type Course } from "./conductor.ts";
import { type Judgement, judge, writeFound } from "./judge.ts";
import { PROXY_FAULTS } from "./network-faults.ts";
import { openScene, STORES } from "./scene.ts";
import { SABOTAGES, TOLD } from "./told.ts";

const USAGE = `Usage: npm run prove -- chaos [options]

  --store S           sqlite (the default), or postgres: a server of its own with a proxy before it
  --kills N           processes to kill (default 20)
  --pauses M          workers to halt beyond their lease (default a quarter of the kills)
  --server-kills K    times to kill the server and start it again (default a tenth of the kills; postgres only)
  --proxy-faults P    connections reset, networks fallen silent, answers to commits lost, a third each, and a quarter as
                      many times connections ended by the server (default half the kills; postgres only)
  --clock-steps C     times to put the clock of the store ahead or back (default a fifth of the kills)
  --seed S            what happens when follows from it (default: a new one)
  --workers W         worker processes (default 4)
  --seconds-limit T   when to stop waiting for faults (default 120 and 10 for each)
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
      "server-kills": { type: "string" },
      "proxy-faults": { type: "string" },
      "clock-steps": { type: "string" },
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
  const store = STORES.find((known) => known === values.store);
  if (store === undefined) throw new Error(`--store must be ${STORES.join(" or ")}; got ${values.store}.`);
  for (const name of values.sabotage.split(",").filter(Boolean)) {
    if (!SABOTAGES.some((known) => known === name)) throw new Error(`--sabotage knows no ${name}.`);
  }
  const kills = whole("--kills", values.kills, 0);
  const pauses = whole("--pauses", values.pauses ?? String(Math.ceil(kills / 4)), 0);
  const onServer = (name: "server-kills" | "proxy-faults", usual: number): number => {
    if (store !== "postgres" && values[name] !== undefined) throw new Error(`--${name} needs --store postgres.`);
    return whole(`--${name}`, values[name] ?? String(store === "postgres" ? Math.ceil(usual) : 0), 0);
  };
  const wanted = {
    kills,
    pauses,
    serverKills: onServer("server-kills", kills / 10),
    proxyFaults: onServer("proxy-faults", kills / 2),
    clockSteps: whole("--clock-steps", values["clock-steps"] ?? String(Math.ceil(kills / 5)), 0),
  };
  const all = Object.values(wanted).reduce((sum, count) => sum + count, 0);
  const secondsLimit = whole("--seconds-limit", values["seconds-limit"] ?? String(120 + 10 * all), 1);
  const { sabotage, keep, judge: again } = values;
  const seed = whole("--seed", values.seed, 0);
  const workers = whole("--workers", values.workers, 2);
  return { store, ...wanted, secondsLimit, seed, workers, sabotage, keep, again };
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
  let remove = !asked.again;
  process.once("exit", () => {
    if (remove) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  let good = false;
  try {
    const played = asked.again ? null : await play(asked, folder);
    const judgement = judge(folder);
    const problems = [...judgement.problems, ...(played ? shortcomings(asked, played, judgement) : [])];
    for (const line of some(problems)) process.stdout.write(`${line}\n`);
    process.stdout.write(`${summary(asked, played, judgement, (performance.now() - startedAt) / 1_000)}\n`);
    if (asked.keep || asked.again) process.stdout.write(`longest stuck was job ${judgement.stuckJob}\n`);
    good = problems.length === 0;
  } finally {
    remove &&= good && !asked.keep;
    if (!remove && !asked.again) process.stdout.write(`${remedy(asked, folder)}\n`);
  }
  return good;
}

/** Conducts a run and writes down how the store was left. */
async function play(asked: Asked, folder: string): Promise<Played> {
  const scene = await openScene(asked.store, folder);
  process.once("exit", () => scene.abandon());
  const environment = {
    folder,
    store: scene.url,
    epoch: String(process.hrtime.bigint()),
    seed: String(asked.seed),
    sabotage: asked.sabotage,
    until: String(Date.now() + asked.secondsLimit * 1_000 + AFTERMATH_MS),
  };
  for (const [what, value] of Object.entries(environment)) process.env[TOLD[what as keyof typeof TOLD]] = value;
  try {
    const course = await conduct({ ...asked, folder, scene });
    await writeFound(folder, scene.directUrl);
    return { ...course, versions: scene.versions };
  } finally {
    await scene.close();
  }
}

type Played = Course & { readonly versions: readonly string[] };

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
function shortcomings(asked: Asked, { done, troubles }: Course, { report }: Judgement): string[] {
  const found = [...troubles];
  const lacking = (kinds: readonly string[], name: string, wanted: number): void => {
    const count = kinds.reduce((sum, kind) => sum + (done[kind] ?? 0), 0);
    if (count < wanted) found.push(`only ${count} of ${wanted} ${name} in time`);
  };
  lacking(["kills"], "kills", asked.kills);
  lacking(["pauses"], "pauses", asked.pauses);
  lacking(["clock steps"], "clock steps", asked.clockSteps);
  lacking(["server kills"], "server kills", asked.serverKills);
  lacking(PROXY_FAULTS, "proxy faults", asked.proxyFaults);
  if (asked.pauses > 0 && report.staleRefused === 0) found.push("no stale write was refused, so fencing was not tried");
  return found;
}

function summary({ seed, store }: Asked, played: Played | null, judgement: Judgement, seconds: number): string {
  const { report, stuckMs, takenBackMs, killed, proven } = judgement;
  const inSeconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
  const parts = [
    `${report.jobs} jobs`,
    ...Object.entries(played?.done ?? {}).map(([kind, count]) => `${count} ${kind}`),
    `${report.lost} lost`,
    `${report.doubleAcked} double-acked`,
    `${report.staleRefused} stale refused`,
    `${report.extraRuns} extra runs`,
    `${report.ambiguous} ambiguous`,
    ...(played?.done["server kills"] ? [`${report.takenBack} claims taken back by a crash`] : []),
    ...(played
      ? [
          `all busy again within ${inSeconds(played.busyAgain.ms)} (${played.busyAgain.worker} after one of the ${played.busyAgain.fault})`,
        ]
      : []),
    `longest stuck ${inSeconds(stuckMs)} (taken back within ${inSeconds(takenBackMs)})`,
    `${killed} deaths by crash, ${proven} with evidence`,
    ...(played ? [`${played.workersKilled} workers killed, ${played.killedByJobs} more taken along by jobs`] : []),
    `${report.events} events`,
    `seed ${seed}`,
    `${seconds.toFixed(0)} s`,
    ...(played?.versions ?? []),
  ];
  return `chaos ${played ? store : "again"}  ${parts.join(", ")}`;
}

function remedy(asked: Asked, folder: string): string {
  const { store, kills, pauses, clockSteps, serverKills, proxyFaults, seed, workers, sabotage } = asked;
  const network = store === "postgres" ? ` --server-kills ${serverKills} --proxy-faults ${proxyFaults}` : "";
  const broken = sabotage === "" ? "" : ` --sabotage ${sabotage}`;
  const again = `npm run prove -- chaos --store ${store} --kills ${kills} --pauses ${pauses} --clock-steps ${clockSteps}${network} --seed ${seed} --workers ${workers}${broken}`;
  return `Histories, logs and what was found are kept in ${folder}\nTo judge them again: npm run prove -- chaos --judge ${folder}\nTo run it again: ${again}`;
}

let asked: Asked | null = null;
try {
  asked = readArguments();
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n\n${USAGE}`);
  process.exit(2);
}
process.exit((await run(asked)) ? 0 : 1);
