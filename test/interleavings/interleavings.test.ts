// Statements of several processes on one Postgres, interleaved in seeded orders: whatever the order, the rules hold; and
// with an old defect planted, they do not. `npm run prove -- interleave` plays more seeds and says which pairs of
// statements they met.
import { describe, expect, inject, it } from "vitest";
import { interleaveSeeds, pairsOf, type Played } from "./interleave.ts";
import type { Tamper } from "./stepper.ts";

const SERVER = inject("postgres18");
const asked = process.env["REDRIVE_PROVE"] === "interleave";
const seeds = Number(process.env["REDRIVE_PROVE_SEEDS"] ?? 20);
const first = Number(process.env["REDRIVE_PROVE_SEED"] ?? 1);
const HOUR = 3_600_000;

/** Seeds in which a planted defect is looked for, by actors that do little else. */
const PLANTED_SEEDS = 40;

/** Defects that were there once, as they were. */
const PLANTED: readonly {
  readonly name: string;
  readonly rule: RegExp;
  readonly only: string[];
  /** Where it takes many verbs to come about. */
  readonly rounds?: number;
  /** The seed that found it last; it is played first. */
  readonly foundBy: number;
  readonly tamper: Tamper;
}[] = [
  {
    name: "a caller that waits for a key reads its holder as it was before the wait",
    rule: /^one job at most/,
    only: ["enqueue"],
    foundBy: 2,
    tamper(statement, text) {
      if (statement === "key_reserve") return text.replace("do update set gone = k.gone where false", "do nothing");
      return statement === "key_holders" ? `${text} order by k.type, k.key for update of k` : text;
    },
  },
  {
    name: "a worker's row that is locked holds up every reaper",
    rule: /^give_up waits for no lock/,
    only: ["give up", "look"],
    foundBy: 1,
    tamper: (statement, text) =>
      statement === "give_up" ? text.replace("for update skip locked", "for update") : text,
  },
  {
    name: "an enqueue writes to a lane that was deleted since it learned its number",
    rule: /^a lane is there/,
    only: ["enqueue", "claim", "settle", "prune"],
    rounds: 26,
    foundBy: 7,
    tamper: (_statement, text) =>
      text.replace(/\(select l\.base from \S+\.lane l .*?\) as in_use/, "(select u.lane) as in_use"),
  },
  {
    name: "a recall takes a job that a claim has taken",
    rule: /^(a waiting job is in the queue|job .* has ended twice|a job that has ended)/,
    only: ["claim", "redrive", "recall"],
    foundBy: 1,
    tamper: (statement, text) =>
      statement === "recall"
        ? text
            .replace(/delete from (\S+)\.waiting w using u, /, "select j.seq, u.n, u.place from u, ")
            .replace(/and w\.lane = j\.lane and w\.run_at = j\.run_at and w\.seq = j\.seq/, "")
            .replace("returning w.seq, u.n, u.place", "")
        : text,
  },
];

const brokenBy = ({ seed, broken }: Played): string[] => broken.map((rule) => `seed ${seed}: ${rule}`);

describe("statements of several processes on Postgres", () => {
  it(`keep every rule in any order, ${seeds} seeds`, { timeout: asked ? HOUR : 240_000 }, async () => {
    const played = await interleaveSeeds({ server: SERVER, first, seeds, ...(asked && { rounds: 26 }) });
    expect(played.flatMap(brokenBy)).toEqual([]);
    if (!asked) return;
    const { met, missed } = pairsOf(played);
    const steps = played.reduce((sum, one) => sum + one.steps.length, 0);
    process.stdout.write(
      `interleave ${played.length} seeds, ${steps} statements, ${met} of ${met + missed.length} pairs\n`,
    );
    for (const pair of missed) process.stdout.write(`  not met: ${pair}\n`);
    if (seeds >= 200) expect(met / (met + missed.length)).toBeGreaterThanOrEqual(0.9);
  });

  it("keep them where dead letters are sent back, taken back and settled", { timeout: 240_000 }, async () => {
    const only = ["claim", "settle", "redrive", "recall", "cancel", "fingerprints", "give up"];
    const played = await interleaveSeeds({ server: SERVER, first, seeds: asked ? seeds : 8, only, rounds: 10 });
    expect(played.flatMap(brokenBy)).toEqual([]);
    const sent = new Set(played.flatMap(({ steps }) => steps.map(({ statement }) => statement)));
    for (const statement of ["redrive", "recall", "letter_outcome", "cell_write_lasting"])
      expect(sent).toContain(statement);
  });

  for (const { name, rule, foundBy, ...more } of PLANTED)
    it(`show that ${name}, where they do`, { timeout: 240_000 }, async () => {
      const enough = ({ broken }: Played): boolean => broken.some((each) => rule.test(each));
      const played = await interleaveSeeds({
        server: SERVER,
        first: foundBy,
        seeds: PLANTED_SEEDS,
        enough,
        ...more,
      });
      expect(played.at(-1)?.broken.filter((each) => rule.test(each))).not.toEqual([]);
    });
});
