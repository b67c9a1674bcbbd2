// What must hold between any two statements of a store on Postgres, asked of its tables.
import type pg from "pg";
import type { Step } from "./stepper.ts";

/** Statements that promise to wait for no lock of another transaction: they are about many rows, and one must not stop all. */
const IMPATIENT: ReadonlySet<string> = new Set(["give_up", "lost", "claim", "claim_groups", "lanes"]);

const CLAIMED = "(select c.n, u.seq, u.epoch from @.claim c cross join unnest(c.seqs, c.epochs) as u (seq, epoch))";

/** Each gives the rows that break it. */
const RULES: Readonly<Record<string, string>> = {
  "a waiting job is in the queue or in one claim under the next epoch": `select j.id, j.state, count(distinct w.seq) as queued, count(distinct c.n) as claims from @.job j
       left join @.waiting w on w.seq = j.seq
       left join ${CLAIMED} c on c.seq = j.seq and c.epoch = j.epoch + 1
       where j.state = 'queued' group by j.id, j.state having count(distinct w.seq) + count(distinct c.n) <> 1`,
  "a job that has ended is not in the queue":
    "select j.id, j.state from @.job j join @.waiting w on w.seq = j.seq where j.state <> 'queued'",
  "the queue names jobs that are there, in their lane and at their time": `select w.seq from @.waiting w left join @.job j on j.seq = w.seq
       where j.seq is null or j.lane <> w.lane or j.run_at <> w.run_at`,
  "a lane is there as long as a job waits in it":
    "select w.lane from @.waiting w left join @.lane l on l.base = w.lane - w.lane % 4 where l.base is null",
  "one job at most has a plain key": "select key from @.job where key like 'key-%' group by key having count(*) > 1",
  "one job at most that never ran waits under a key": `select key from @.job where state = 'queued' and epoch = 0 and not exists (select from ${CLAIMED} c where c.seq = job.seq)
       and key ~ '^(queued|replace|debounce)-' group by key having count(*) > 1`,
  "one job at most is active under a key of mode active":
    "select key from @.job where state = 'queued' and key like 'active-%' group by key having count(*) > 1",
  "a dead job has one open letter, of its generation": `select j.id, count(d.seq) from @.job j left join @.dead_letter d
       on d.job_seq = j.seq and d.redriven_at is null where j.state = 'dead' group by j.id
       having count(d.seq) <> 1 or not bool_and(d.generation = j.generation)`,
  "a job that waits or runs has no open letter":
    "select j.id from @.job j join @.dead_letter d on d.job_seq = j.seq where j.state = 'queued' and d.redriven_at is null",
  "what a run sent is counted once": `select t.redrive, t.left_over, p.pending from (
         select redrive, sum(sent - good - same - other - cancelled - gone - recalled) as left_over from @.redrive_tick group by 1) t
       left join (select redrive, count(*) as pending from @.dead_letter where outcome is null and redrive is not null group by 1) p
         on p.redrive = t.redrive where t.left_over <> coalesce(p.pending, 0)`,
  "a group has no more places taken than it may": `select p.group_n from @.place p join @.job j on j.seq = p.seq join @.lane l on l.base = j.lane - j.lane % 4
       group by p.group_n, l.group_concurrency having count(*) > l.group_concurrency`,
};

/** The newest job of each key that is there, and whether the key stands for it. */
const NEWEST = `select distinct on (j.key) j.key, j.seq,
    exists (select from @.job_key k where k.key = j.key and k.job_id = j.id) as stands
  from @.job j where j.key is not null order by j.key, j.seq desc`;

/**
 * A key stands for the newest of its jobs as long as that is there. One that took the key over may be gone already, and
 * then an older one that is still there has nothing to do with the key; \`seen\` remembers the newest that ever was.
 */
export async function brokenKeys(monitor: pg.Client, schema: string, seen: Map<string, number>): Promise<string[]> {
  const { rows } = await monitor.query<{ key: string; seq: string; stands: boolean }>(NEWEST.replaceAll("@", schema));
  const broken = rows.filter(({ key, seq, stands }) => !stands && Number(seq) >= (seen.get(key) ?? 0));
  for (const { key, seq } of rows) seen.set(key, Math.max(Number(seq), seen.get(key) ?? 0));
  return broken.map(({ key }) => `a key stands for the newest of its jobs: ${key} does not`);
}

/** The broken rules, each with its first row; asked in one go. */
export async function brokenRules(monitor: pg.Client, schema: string): Promise<string[]> {
  const parts = Object.values(RULES).map(
    (text, at) => `(select ${at} as rule, to_json(r)::text as found from (${text}) r limit 1)`,
  );
  const { rows } = await monitor.query<{ rule: number; found: string }>(
    parts.join(" union all ").replaceAll("@", schema),
  );
  return rows.map(({ rule, found }) => `${Object.keys(RULES)[rule]}: ${found}`);
}

/** Those that wait for a lock though they promise not to. */
export function brokenPatience(blocked: readonly Step[]): string[] {
  return blocked
    .filter(({ statement }) => IMPATIENT.has(statement))
    .map(({ statement }) => `${statement} waits for no lock of another transaction`);
}
