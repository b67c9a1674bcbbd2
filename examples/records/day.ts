// The story: a file that grows, fed to `redrive drain` turn after turn as cron would, one turn killed in the middle, and turns
// until nothing waits any more.
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createRedrive, type Redrive } from "redrive";
import { type EnrichmentApi, openApi } from "./api.ts";
import { balance, countStates, type Run, type States } from "./books.ts";
import { type Customer, customers } from "./customers.ts";
import { paint } from "../kit/paint.ts";
import { bar, check, print, tableRow } from "./screen.ts";
import { type Figures, startTurn } from "./turn.ts";

/** What a day is made of. */
export interface Day {
  readonly store: string;
  readonly records: number;
  readonly folder: string;
}

/** Between two turns: five minutes of a real day. */
const PAUSE_MS = 500;
const MOST_TURNS = 60;
/** How much of the records is in the file by the first, the second and the third turn. */
const ARRIVED = [0.4, 0.75, 1];
const KILLED_TURN = 2;
const HEAD = ["turn", "read", "new", "known", "done", "retry", "dead", "success", "wait", "time"];

/** Runs the story; true if the books balance. */
export async function startDay({ store, records, folder }: Day): Promise<boolean> {
  const api = await openApi();
  // Ids that no other run has, because a store knows the ids of those before.
  const label = Date.now().toString(36);
  const place = { store, input: join(folder, "incoming.ndjson"), output: join(folder, "results.ndjson"), api: api.url };
  const run: Run = { label, records, place, journal: api.journal, turns: [], killedAfter: 0, untouched: false };
  try {
    const redrive = await createRedrive({ store, log: "error" });
    try {
      print(`${paint("bold", "Records")}: ${records} customers through a flaky API, a turn every few moments\n`);
      tableRow(HEAD, "dim");
      const stopWatching = watch(api, records);
      await turns(redrive, api, run).finally(stopWatching);
      print(`\n${paint("bold", "The books")}`);
      const checks = await balance(redrive, run);
      for (const { ok, text } of checks) check(ok, text);
      print(`\nResults: ${place.output}`);
      return checks.every(({ ok }) => ok);
    } finally {
      await redrive.close();
    }
  } finally {
    await api.close();
  }
}

async function turns(redrive: Redrive, api: EnrichmentApi, run: Run): Promise<void> {
  for (let number = 1; number <= MOST_TURNS; number++) {
    const fed = await arrive(run, number);
    const figures = number === KILLED_TURN ? await killed(api, run) : await startTurn(run.place).ended;
    const states = await countStates(redrive, run.label);
    run.turns.push({ fed, figures, states });
    tell(number, run, figures, states);
    if (number >= ARRIVED.length && states.waiting + states.running === 0) return;
    await sleep(PAUSE_MS);
  }
  throw new Error(`After ${MOST_TURNS} turns records still wait.`);
}

/** Adds what came in since the last turn; says how many lines there are, and how many of these ids were there before. */
async function arrive({ label, records, place }: Run, number: number): Promise<{ lines: number; changed: number }> {
  const upTo = (turn: number): number => Math.floor(records * (ARRIVED[Math.min(turn, ARRIVED.length) - 1] ?? 0));
  const last = ARRIVED.length;
  if (number <= last) {
    const added: Customer[] = customers(label, upTo(number - 1), upTo(number));
    // One line comes twice, and one with another body: neither is a record of its own.
    if (number === last) added.push(...customers(label, 0, 1), { id: `${label}-0`, email: "another@example.com" });
    const text = added.map((customer) => `${JSON.stringify(customer)}\n`).join("");
    await (number === 1 ? writeFile(place.input, text) : appendFile(place.input, text));
  }
  return { lines: upTo(number) + (number >= last ? 2 : 0), changed: number >= last ? 1 : 0 };
}

/** Shows how many records the API was asked about, until it is told to stop. */
function watch(api: EnrichmentApi, records: number): () => void {
  const seen = new Set<string>();
  let looked = 0;
  const drawing = setInterval(() => {
    for (; looked < api.journal.length; looked++) seen.add(api.journal[looked]?.id ?? "");
    bar(seen.size / records, `${seen.size} of ${records} records, ${looked} calls`);
  }, 100);
  return () => clearInterval(drawing);
}

/** Kills a turn with SIGKILL when about half of what is new was called for. */
async function killed(api: EnrichmentApi, run: Run): Promise<null> {
  const output = (): Promise<string> => readFile(run.place.output, "utf8");
  const before = await output();
  const from = api.journal.length;
  const goal = Math.floor(run.records * ((ARRIVED[1] ?? 1) - (ARRIVED[0] ?? 0)) * 0.5);
  const turn = startTurn(run.place);
  const ended = turn.ended.then(() => true);
  while (api.journal.length - from < goal) {
    if (await Promise.race([ended, sleep(5, false)])) throw new Error("The turn ended before it could be killed.");
  }
  run.killedAfter = api.journal.length - from;
  turn.kill();
  await ended;
  run.untouched = (await output()) === before;
  return null;
}

function tell(number: number, run: Run, figures: Figures | null, { waiting, running }: States): void {
  if (!figures) {
    const text = `kill -9 after ${run.killedAfter} calls: ${running} records were its own, the output is as before`;
    return print(`${String(number).padStart(5)}  ${paint("red", text)}`);
  }
  const { records, enqueued, known, conflicts, completed, retried, dead, successRate, ms } = figures;
  const rate = successRate === null ? "-" : `${(Math.floor(successRate * 1_000) / 10).toFixed(1)} %`;
  const cells = [number, records, enqueued, known + conflicts, completed, retried, dead, rate, waiting];
  tableRow([...cells.map(String), `${(ms / 1_000).toFixed(1)} s`]);
}
