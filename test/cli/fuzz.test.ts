// Two thousand random calls, each in a folder of its own: arguments, config files, environment and stdin of every kind.
// Whatever comes, the exit code is one of the contract, no stack trace is printed, and a refusal leaves nothing behind.
// FUZZ_SEED=n makes another two thousand.
import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { runCli } from "../support/cli.ts";

const COMMANDS = [
  "enqueue worker drain stats health migrate doctor init help completion",
  "jobs dlq list show cancel retry reschedule remove export stats explain",
  "breakers queues limits open close reset pause resume",
].flatMap((line) => line.split(" "));
const PAIRS = [
  ["jobs", "list"],
  ["jobs", "show"],
  ["jobs", "cancel"],
  ["jobs", "retry"],
  ["jobs", "reschedule"],
  ["dlq", "list"],
  ["dlq", "show"],
  ["dlq", "stats"],
  ["dlq", "retry"],
  ["dlq", "remove"],
  ["dlq", "export"],
  ["jobs", "explain"],
  ["breakers", "list"],
  ["breakers", "open"],
  ["breakers", "close", "thing"],
  ["breakers", "reset"],
  ["queues", "list"],
  ["queues", "pause"],
  ["queues", "resume", "default"],
  ["enqueue", "thing"],
  ["enqueue", "thing", "{}"],
  ["drain", "--jobs", "jobs.mjs"],
  // Too few, whatever follows: a day that is held would take longer than all other calls.
  ["demo", "--jobs", "3"],
];
const FLAGS = `store config json quiet jobs concurrency lease heartbeat queues health-port health-host archive release
  within grace key key-field unique priority delay run-at tenant max-attempts deadline service queue state type limit cursor
  all class reason from until older-than text fingerprint yes format output plan js for help version prioriti __proto__`
  .split(/\s+/)
  .map((name) => `--${name}`);
const NUMBERS = ["0", "1", "-1", "1.5", "1e9", "99999999999999999999", "NaN", "Infinity", "8640000000000001"];
const TEXTS = ["", " ", "-", "--", "@", "@none", "{}", "[", "null", "a,b", ",", "thing", "no good", "x".repeat(300)];
const TIMES = ["5s", "1h30m", "5", "-5s", "1y", "0s", "2027-01-31", "2027-01-31T08:00:00Z", "tomorrow"];
const STORES = [
  "sqlite:a.db",
  "sqlite:",
  "sqlite:.",
  "memory:",
  "sqlite::memory:",
  "postgres://u:hunter2@h/d",
  "sqlite:x/y.db",
];
const WORDS = [
  "__proto__",
  "constructor",
  "dead",
  "queued",
  "scheduled",
  "permanent",
  "exhausted",
  "csv",
  "key",
  "debounce",
];
const ODD = ["jobs.mjs", "none.ts", "bad.mjs", "redrive.config.yaml", "\u0000", "\u001b[2J", "\ud800", "漢字"];
const VALUES = [...NUMBERS, ...TEXTS, ...TIMES, ...STORES, ...WORDS, ...ODD];
const garbage = fc.string({ unit: "binary", maxLength: 20 }).map((text) => text.replaceAll("/", "_"));
const token = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...FLAGS) },
  { weight: 5, arbitrary: fc.constantFrom(...VALUES) },
  { weight: 1, arbitrary: fc.constantFrom(...COMMANDS) },
  { weight: 1, arbitrary: garbage },
);
const flagged = fc
  .tuple(fc.constantFrom(...FLAGS), fc.constantFrom(...VALUES))
  .map(([flag, value]) => [`${flag}=${value}`]);
const args = fc
  .tuple(
    fc.oneof(
      fc.constantFrom(...PAIRS),
      fc.constantFrom(...COMMANDS).map((name) => [name]),
      token.map((one) => [one]),
    ),
    fc.array(
      fc.oneof(
        token.map((one) => [one]),
        flagged,
      ),
      { maxLength: 5 },
    ),
  )
  .map(([head, rest]) => [...head, ...rest.flat()]);

const scalar = fc.constantFrom(
  "5",
  "-1",
  "5s",
  "x",
  "true",
  "null",
  "sqlite:c.db",
  "[]",
  "{}",
  "!!binary x",
  "&a x",
  "*a",
  "jobs.mjs",
);
const field = fc.constantFrom(
  "store",
  "jobs",
  "defaults",
  "worker",
  "stroe",
  "__proto__",
  "constructor",
  "prototype",
  "defaults: { maxAttempts",
  "defaults: { backoff",
  "defaults: { stuck",
  "worker: { lease",
  "worker: { queues",
  "worker: { health",
);
const yaml = fc.oneof(
  fc
    .array(fc.tuple(field, scalar), { maxLength: 3 })
    .map((lines) =>
      lines.map(([name, value]) => (name.includes("{") ? `${name}: ${value} }` : `${name}: ${value}`)).join("\n"),
    ),
  garbage,
);
const variable = fc.constantFrom(
  "MAX_RETRY_ATTEMPTS",
  "MAX_RETRIES",
  "RETRY_DELAY_SECONDS",
  "REDRIVE_LOG",
  "REDRIVE_STORE",
);
const world = fc.record({
  args,
  config: fc.option(yaml, { freq: 3 }),
  env: fc.dictionary(variable, fc.constantFrom(...VALUES, "debug", "silent"), { maxKeys: 1 }),
  /** Whether there is a store with jobs already. */
  isUsed: fc.boolean(),
  stdin: fc.constantFrom("", "{}\n", "{\n", "1\n2\n\n", "\ufeff{}", "\u0000"),
});

const JOBS = `import { defineJob } from "redrive";\nexport const thing = defineJob("thing", { run: () => 1 });`;

function jobsIn(path: string): number {
  if (!existsSync(path)) return 0;
  const db = openDatabase(path);
  try {
    return db.prepare("select count(*) from job").all()[0]?.[0] as number;
  } catch {
    return 0;
  } finally {
    db.close();
  }
}

it("2,000 random calls end as the contract says", { timeout: 180_000 }, async () => {
  const seen = new Map<number, number>();
  const used = mkdtempSync(join(tmpdir(), "redrive-fuzz-used-"));
  await runCli(["enqueue", "thing", "{}"], used, {});
  await runCli(["enqueue", "other", '{"password":"hunter2"}', "--delay", "1h"], used, {});
  const allowed = [0, 1, 2, 3, 4, 78, 143];
  const call = async (given: typeof world extends fc.Arbitrary<infer T> ? T : never): Promise<void> => {
    const folder = mkdtempSync(join(tmpdir(), "redrive-fuzz-"));
    try {
      writeFileSync(join(folder, "jobs.mjs"), JOBS);
      writeFileSync(join(folder, "bad.mjs"), "export const {");
      if (given.isUsed) copyFileSync(join(used, "redrive.db"), join(folder, "redrive.db"));
      const before = jobsIn(join(folder, "redrive.db"));
      expect(before).toBe(given.isUsed ? 2 : 0);
      if (given.config !== null) writeFileSync(join(folder, "redrive.config.yaml"), given.config);
      // A worker that was started well is asked to stop at once, so that every call ends.
      const onReady = (send: (signal: "SIGTERM") => void): void => send("SIGTERM");
      const { stdin, env } = given;
      const { code, out, err } = await runCli(given.args, folder, { stdin, env, onReady });
      seen.set(code, (seen.get(code) ?? 0) + 1);
      expect({ code, err }).toSatisfy(({ code: end }: { code: number }) => allowed.includes(end));
      expect(code === 143).toBe(code === 143 && given.args.some((arg) => ["worker", "drain", "demo"].includes(arg)));
      expect(out + err).not.toMatch(/\n\s+at |hunter2/);
      expect(out + err).not.toContain("\u001b");
      if (code !== 0 && code !== 143) expect(out + err).not.toBe("");
      if (code === 2 || code === 78) {
        const streamed = given.args.includes("-");
        for (const name of ["a.db", "c.db"]) expect(streamed ? 0 : jobsIn(join(folder, name))).toBe(0);
        if (!streamed) expect(jobsIn(join(folder, "redrive.db"))).toBe(before);
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  try {
    const seed = Number(process.env.FUZZ_SEED ?? 7);
    await fc.assert(fc.asyncProperty(world, call), { numRuns: 2_000, endOnFailure: true, seed });
  } finally {
    rmSync(used, { recursive: true, force: true });
  }
  // Enough of them got somewhere, or this would prove little.
  expect(seen.get(0)).toBeGreaterThan(50);
  expect(seen.get(2)).toBeGreaterThan(200);
  expect(seen.get(78)).toBeGreaterThan(50);
});
