// The view `runs` on SQLite: the same as the library says, whatever happened to a job, and fast among many.
import { describe, expect, it } from "vitest";
import { createRedrive } from "../../../src/redrive.ts";
import { cpuMs } from "../../support/cpu-time.ts";
import { connect, inlineStore, reader } from "../../support/database-file.ts";
import { newJob } from "../../support/new-job.ts";
import { asRows, LIVES, live } from "../../support/run-lives.ts";
import { add, start } from "../../support/runs.ts";

const text = (ms: number): string => new Date(ms).toISOString().replace("T", " ").replace("Z", "");
const HISTORY = "select * from runs where job_id = ? order by generation, retry_count";

describe("the view of runs", () => {
  it.each(Object.entries(LIVES))("says what the library says of a job that %s", async (_, steps) => {
    const { path, store, clock } = await inlineStore();
    for (const limited of [true, false]) {
      const lived = await live(store, clock, steps, { limited });
      expect(reader(path)(HISTORY, lived.job.id)).toEqual(asRows(lived, text, Number));
    }
  });

  it("shows odd rows and does not break", async () => {
    const { path, store } = await inlineStore();
    const id = await add(store);
    const other = await add(store);
    const db = connect(path);
    db.exec("pragma ignore_check_constraints = on");
    const damage = "lane = 4711, attempts = -7, max_attempts = 9223372036854775807, run_at = -1, state = 'running'";
    db.prepare(`update job set ${damage}, started_at = null, generation = -3 where id = ?`).run(id);
    expect(reader(path)("select count(*) from runs")).toEqual([[2]]);
    expect(reader(path)("select status from runs where job_id = ?", other)).toEqual([["queued"]]);
  });

  it("answers from an index: what is pending by due time, the history of one, what runs", async () => {
    const { path } = await inlineStore();
    const ask = reader(path);
    const plan = (sql: string): string =>
      ask(`explain query plan ${sql}`)
        .map((row) => String(row[3]))
        .join("\n");
    const pending = plan("select * from runs where status = 'pending_retry' order by next_retry_at limit 20");
    expect(pending).toMatch(/SCAN j USING INDEX job_retrying/);
    const history = plan("select * from runs where job_id = 'x' order by generation, retry_count");
    expect(history).not.toMatch(/SCAN (j|a)\b/);
    const running = plan("select * from runs where status = 'running'");
    expect(running).toMatch(/SEARCH j USING INDEX job_ended \(state=\? AND expires_at=\?\)/);
  });
});

describe("with 200,000 waiting retries", () => {
  it("what is pending, stuck or one job's history is answered at once", { timeout: 120_000 }, async () => {
    const { path, store, clock } = await inlineStore();
    const jobs = Array.from({ length: 1_000 }, () => newJob({ type: "retry" }));
    await store.enqueue(jobs);
    const db = connect(path);
    // Copies of jobs that failed once, each due a second after the one before.
    db.exec(`begin; update job set attempts = 1, lane = lane + 1;
      with recursive n (i) as (select 1 union all select i + 1 from n where i < 199)
      insert into job (id, lane, state, run_at, due_at, created_at, updated_at, attempts, max_attempts, max_crashes, version, payload)
      select j.id || '-' || n.i, j.lane, 'queued', j.run_at + (n.i * 1000 + j.seq) * 1000, j.due_at, j.created_at, j.updated_at, 1, 10, 3, 1, '1'
      from n cross join job j; commit; analyze`);
    expect(await store.count()).toMatchObject({ queued: 200_000 });
    const ask = reader(path);
    const best = async (act: () => unknown): Promise<number> => {
      const times: number[] = [];
      for (let turn = 0; turn < 5; turn++) times.push(await cpuMs(act));
      return Math.min(...times);
    };
    const first = "select id, next_retry_at from runs where status = 'pending_retry' order by next_retry_at limit 50";
    expect(ask(first)).toHaveLength(50);
    const stuck = await start(store, { stuckMs: 1 });
    clock.now += 10;
    const redrive = await createRedrive({ store });
    expect((await redrive.stuck.list()).map(({ id }) => id)).toEqual([stuck.id]);
    // Processor time, and the best of five: the first ones compile.
    expect(await best(() => ask(first))).toBeLessThan(50);
    expect(await best(() => redrive.stuck.list())).toBeLessThan(50);
    expect(await best(() => store.list({ limit: 50, state: "queued", tried: true, sort: "due" }))).toBeLessThan(50);
    const page = await store.list({ limit: 200, tried: true, sort: "due" });
    const { runAt } = page.items.at(-1) ?? { runAt: 0 };
    const far = `${runAt + 100_000_000}.1`;
    expect(await best(() => store.list({ limit: 50, tried: true, sort: "due", cursor: far }))).toBeLessThan(50);
    expect(await best(() => ask(HISTORY, `${(jobs[5] as { id: string }).id}-7`))).toBeLessThan(50);
  });
});
