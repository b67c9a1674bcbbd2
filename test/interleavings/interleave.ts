// Plays one seed: two to four actors with stores of their own on one schema, their statements stepped in seeded order, the
// rules asked after every step, and the books compared at the end.
import pg from "pg";
import { createPostgresStore, type PostgresStore } from "../../src/store/postgres/index.ts";
import { createDice } from "../simulation/dice.ts";
import { empty, freshSchema, sql } from "../support/postgres-world.ts";
import { signUp } from "../support/runs.ts";
import { type Acting, type Book, play, prepare } from "./actors.ts";
import { brokenKeys, brokenPatience, brokenRules } from "./rules.ts";
import { type Step, Stepper, type Tamper } from "./stepper.ts";

/** What is played. */
interface Interleaving {
  readonly server: string;
  readonly schema: string;
  readonly seed: number;
  readonly tamper?: Tamper | undefined;
  /** The verbs of the actors; absent, all. */
  readonly only?: readonly string[] | undefined;
  readonly rounds: number;
}

/** Verbs that each actor plays in a seed, unless asked otherwise. */
const ROUNDS = 8;

/** What came of it. */
export interface Played {
  readonly seed: number;
  readonly steps: readonly Step[];
  /** The rules that were broken first, with the step after which they were. */
  readonly broken: readonly string[];
}

/** Plays seeds one after the other on a schema of their own, until one is enough. */
export async function interleaveSeeds(options: {
  readonly server: string;
  readonly first: number;
  readonly seeds: number;
  readonly tamper?: Tamper;
  readonly only?: readonly string[];
  readonly rounds?: number;
  readonly enough?: (played: Played) => boolean;
}): Promise<Played[]> {
  const { server, first, seeds, tamper, only, rounds = ROUNDS, enough = () => false } = options;
  const schema = freshSchema();
  const made = createPostgresStore({ url: server, schema });
  await made.migrate();
  await made.close();
  const played: Played[] = [];
  try {
    for (let seed = first; seed < first + seeds; seed++) {
      const one = await interleave({ server, schema, seed, tamper, only, rounds });
      played.push(one);
      if (enough(one)) break;
      await empty(server, schema);
    }
  } finally {
    await sql(server, `drop schema ${schema} cascade`);
  }
  return played;
}

/** Plays a seed on a schema that is there and empty. */
async function interleave({ server, schema, seed, tamper, only, rounds }: Interleaving): Promise<Played> {
  const dice = createDice(seed, "order");
  const monitor = new pg.Client({ connectionString: server });
  await monitor.connect();
  const stepper = new Stepper(dice, monitor, tamper);
  const book: Book = { created: new Set(), ended: new Map(), endedJobs: new Set(), workers: [] };
  const names = ["one", "two", "three", "four"].slice(0, dice.between(2, 4));
  const stores = names.map(() => createPostgresStore({ url: server, schema, maxConnections: 2 }));
  const broken: string[] = [];
  const newest = new Map<string, number>();
  try {
    for (const store of stores) book.workers.push(await signUp(store));
    const acting = names.map((name, at) => {
      const [store, worker] = [stores[at] as PostgresStore, book.workers[at] as string];
      return { store, worker, dice: createDice(seed, name), book, server, schema, only, rounds };
    });
    await prepare(acting[0] as Acting);
    const playing = acting.map((one, at) => stepper.act(names[at] as string, (say) => play(one, say)));
    const all = Promise.all(playing);
    all.catch(() => undefined);
    await stepper.run(async (step, blocked) => {
      if (broken.length > 0) return;
      const found = brokenPatience(blocked);
      if (step.commits)
        found.push(...(await brokenRules(monitor, schema)), ...(await brokenKeys(monitor, schema, newest)));
      broken.push(...found.map((rule) => `${rule}, after ${step.statement} of ${step.actor}`));
    });
    await all;
    broken.push(...(await brokenBooks(monitor, schema, book)));
    broken.push(...stepper.circles.map((statement) => `transactions wait for each other in no circle: ${statement}`));
  } finally {
    for (const store of stores) await store.close();
    await monitor.end();
  }
  return { seed, steps: stepper.steps, broken };
}

/** A job that was created is there, or was ended once in each generation and pruned. */
async function brokenBooks(monitor: pg.Client, schema: string, { created, ended, endedJobs }: Book): Promise<string[]> {
  const { rows } = await monitor.query<{ id: string }>(`select id from ${schema}.job`);
  const there = new Set(rows.map(({ id }) => id));
  const lost = [...created].filter((id) => !there.has(id) && !endedJobs.has(id));
  const twice = [...ended].filter(([, times]) => times > 1).map(([id]) => id);
  return [...lost.map((id) => `job ${id} is lost`), ...twice.map((id) => `job ${id} has ended twice`)];
}

/** The verbs whose statements are paired with those of an enqueue. */
const PAIRED = ["enqueue", "claim", "settle", "prune", "give up"];

/** Which ordered pairs of statements followed one another in two actors, of those that could. */
export function pairsOf(played: readonly Played[]): { readonly met: number; readonly missed: readonly string[] } {
  const seen = new Map(PAIRED.map((verb) => [verb, new Set<string>()]));
  const met = new Set<string>();
  const nameOf = ({ verb, statement }: Step): string => `${verb}/${statement}`;
  for (const { steps } of played)
    steps.forEach((step, at) => {
      seen.get(step.verb)?.add(nameOf(step));
      const before = steps[at - 1];
      if (before && before.actor !== step.actor) met.add(`${nameOf(before)} → ${nameOf(step)}`);
    });
  const own = [...(seen.get("enqueue") ?? [])];
  const others = [...seen.values()].flatMap((names) => [...names]);
  const wanted = new Set(own.flatMap((a) => others.flatMap((b) => [`${a} → ${b}`, `${b} → ${a}`])));
  const missed = [...wanted].filter((pair) => !met.has(pair));
  return { met: wanted.size - missed.length, missed };
}
