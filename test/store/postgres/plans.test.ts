// How Postgres goes about a claim, a look at the lanes and a settle: by an index whatever it believes about the tables,
// with plans made for the values and with plans made for any, so that they cost what they return and not what is kept.
// Each trap here was met and measured once.
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { openDependencies } from "../../../src/store/postgres/dependencies.ts";
import { settleStatements } from "../../../src/store/postgres/settle-statements.ts";
import { createPostgresStore, type PostgresStore } from "../../../src/store/postgres/index.ts";
import { openWaker, wakeNames } from "../../../src/store/postgres/wake.ts";
import { lanesText } from "../../../src/store/postgres/lanes.ts";
import { claimText, groupClaimText } from "../../../src/store/postgres/work.ts";
import { newJob } from "../../support/new-job.ts";
import { type PlanStep, planOf, products, wholeTables } from "../../support/postgres-plan.ts";
import { blocksRead } from "../../support/postgres-blocks.ts";
import { freshSchema, storeBeside } from "../../support/postgres-world.ts";
import { claimBy, nextNonce, signUp } from "../../support/runs.ts";

const URL = inject("postgres18");
const SERVERS = ["postgres18", "postgres15"] as const;
const BIG = 1_000_000;
const HOT = ["job", "waiting"];
const LEASES = 500;

const setup = (url = URL) => storeBeside(url);

type Setup = Awaited<ReturnType<typeof setup>>;

/** What Postgres believes about the tables. */
const BELIEFS: Readonly<Record<string, (at: Setup) => Promise<void>>> = {
  "no statistics": async () => undefined,
  "fresh statistics": async ({ store, client, s }) => {
    for (let n = 0; n < 3; n++) await store.enqueue(Array.from({ length: 1_000 }, () => newJob()));
    await client.query(`analyze ${s}.job, ${s}.waiting, ${s}.lane, ${s}.worker, ${s}.control`);
  },
  "statistics of a million rows": async (at) => {
    await BELIEFS["fresh statistics"]?.(at);
    // What it counts is the rows of a page; the pages it sees for itself.
    await at.client.query(
      `update pg_class set reltuples = $2, relpages = pg_relation_size(oid) / 8192 where oid in ($1::regclass, $3::regclass)`,
      [`${at.s}.job`, BIG, `${at.s}.waiting`],
    );
  },
};

const list = (count: number, value: (n: number) => string, type: string): string =>
  `array[${Array.from({ length: count }, (_, n) => value(n)).join(", ")}]::${type}[]`;
const texts = (count: number): string => list(count, (n) => `'t${n}'`, "text");
const numbers = (count: number, value = (n: number): number => n): string =>
  list(count, (n) => String(value(n)), "bigint");
const ints = (count: number): string => list(count, () => "1", "int");

/** The statements of the hot path, with values as a busy worker sends them. */
function hot(s: string): Readonly<Record<string, readonly [text: string, values: string]>> {
  const settles = settleStatements(s, openWaker(wakeNames(s)));
  const leases = `${texts(2)}, ${numbers(LEASES)}, ${numbers(LEASES)}, ${ints(LEASES)}`;
  const lanes = 3;
  const quotas = `${numbers(lanes, (n) => n * 4)}, ${ints(lanes)}`;
  const blame = `${ints(LEASES)}, ${ints(LEASES)}${`, ${texts(LEASES)}`.repeat(6)}, ${list(LEASES, (n) => String(n > 1), "boolean")}`;
  return {
    claim: [
      claimText(s),
      `'w', 1, 1, ${quotas}, 500, 'n', 1, ${texts(3)}, ${ints(lanes)}, ${numbers(lanes)}, ${numbers(lanes)}, 4`,
    ],
    groups: [groupClaimText(s), `'w', 1, 1, ${quotas}, 500, 'n', 1, ${texts(3)}, ${ints(lanes)}`],
    lanes: [lanesText(s), `${numbers(2)}, ${numbers(2)}, ${numbers(2)}, ${numbers(2, (n) => n + 9)}, 1000`],
    find: [settles.find.text, `${texts(LEASES)}, ${numbers(LEASES)}, ${texts(LEASES)}`],
    locked: [settles.locked.text, `${numbers(LEASES)}, ${numbers(LEASES)}`],
    complete: [settles.complete.text, `${leases}, ${texts(LEASES)}, 'w', 7`],
    complete_one: [settles.completeOne.text, `'id', 1, 'n', null`],
    forget: [settles.forget.text, `${leases}, 'w', 7`],
    release: [settles.release.text, `${leases}, ${numbers(LEASES)}, ${ints(LEASES)}, 'w', 7`],
    dead: [settles.dead.text, `${leases}, ${ints(LEASES)}, ${texts(LEASES)}, ${blame}, 'w', 7`],
    retry: [settles.retry.text, `${leases}, ${numbers(LEASES)}, ${ints(LEASES)}, ${ints(LEASES)}, ${blame}, 'w', 7`],
  };
}

/** Sets the connection up as the store does with its own. */
async function likeOurs(client: pg.Client): Promise<void> {
  const { config, db } = openDependencies({ url: URL }, {});
  await db.close();
  for (const [, name, value = ""] of (config?.options ?? "").matchAll(/-c (\w+)=((?:\\.|\S)+)/g))
    await client.query("select set_config($1, $2, false)", [name, value.replaceAll("\\", "")]);
}

const isSearched = (step: PlanStep): boolean => HOT.includes(step["Relation Name"] ?? "");

/** They go from row to row by themselves, or join small tables: what they search in the large ones they must find by an index. */
const BY_ITSELF = ["lanes", "groups", "find", "locked", "complete_one"];

function expectBounded(name: string, steps: readonly PlanStep[], byItself = BY_ITSELF): void {
  if (!byItself.includes(name)) {
    const joins = steps.map((step) => step["Node Type"]).filter((kind) => /^(Hash|Merge) Join$/.test(kind));
    expect([name, wholeTables(steps, HOT), products(steps), joins]).toEqual([name, [], [], []]);
  }
  const isFound = (step: PlanStep): boolean =>
    step["Index Cond"] !== undefined || /^(Tid|Bitmap Heap) Scan$/.test(step["Node Type"]);
  const searched = steps.filter((step) => isSearched(step) && step["Node Type"] !== "ModifyTable");
  expect([name, searched.filter((step) => !isFound(step))]).toEqual([name, []]);
}

describe.each(SERVERS)("on %s", (server) => {
  const url = inject(server);
  it.skipIf(url === null).each(Object.keys(BELIEFS))(
    "with %s no hot statement that was prepared once scans, joins or multiplies",
    async (belief) => {
      const at = await setup(url as string);
      await likeOurs(at.client);
      await BELIEFS[belief]?.(at);
      for (const [name, [text, values]] of Object.entries(hot(at.s))) {
        await at.client.query(`prepare ${name} as ${text}`);
        expectBounded(name, await planOf(at.client, `execute ${name} (${values})`));
      }
    },
  );
});

it("on a connection of somebody else's, plans for large tables are as good without being prepared", async () => {
  const at = await setup();
  await BELIEFS["statistics of a million rows"]?.(at);
  for (const [name, [text, values]] of Object.entries(hot(at.s))) {
    await at.client.query(`prepare ${name} as ${text}`);
    // Five plans for the values come before the first for any.
    for (let time = 0; time < 7; time++)
      expectBounded(name, await planOf(at.client, `execute ${name} (${values})`), [...BY_ITSELF, "dead"]);
  }
});

it("what was prepared on empty tables is as good when they are full and nobody has analysed them", async () => {
  const at = await setup();
  const worker = await signUp(at.store);
  await at.client.query(`alter table ${at.s}.job set (autovacuum_enabled = false)`);
  await at.client.query(`alter table ${at.s}.waiting set (autovacuum_enabled = false)`);
  const round = async (): Promise<void> => {
    const { jobs } = await claimBy(at.store, worker, { limit: 100 });
    const verdict = { kind: "complete", result: null } as const;
    await at.store.settle({ settlements: jobs.map(({ id, epoch, nonce }) => ({ id, epoch, nonce, verdict })) });
  };
  // More rounds than the pool has connections.
  for (let n = 0; n < 12; n++) await at.store.enqueue([newJob()]).then(round);
  for (let n = 0; n < 30; n++) await at.store.enqueue(Array.from({ length: 1_000 }, () => newJob()));
  const scans = `select sum(seq_tup_read)::int as read from pg_stat_user_tables where schemaname = $1 and relname in ('job', 'waiting')`;
  const read = async (): Promise<number> => {
    await at.client.query("select pg_stat_clear_snapshot()");
    return Number((await at.client.query<{ read: number }>(scans, [at.s])).rows[0]?.read);
  };
  const before = await read();
  for (let n = 0; n < 5; n++) await round();
  await at.store.close();
  // A backend says what it read when it ends.
  await expect.poll(read).toBeLessThan(before + 30_000);
});

describe("a claim", () => {
  const stepsOf = async ({ client, s }: Setup): Promise<PlanStep[]> => {
    await likeOurs(client);
    const [text, values] = hot(s)["claim"] as [string, string];
    await client.query(`prepare claim as ${text}`);
    return planOf(client, `execute claim (${values})`);
  };

  it("has the time in its index condition, which clock_timestamp() could not be", async () => {
    const steps = await stepsOf(await setup());
    const searches = steps.filter((step) => step["Index Name"] === "waiting_pkey").map((step) => step["Index Cond"]);
    const search = steps.find((step) => step["Index Cond"]?.includes("run_at <= "));
    // The other one looks for anything in a lane before.
    expect(searches).toEqual(expect.arrayContaining([search?.["Index Cond"], "(lane < $13)"]));
    expect(search?.["Index Cond"]).toContain("lane = q.lane");
    expect(search).not.toHaveProperty("Filter");
  });

  it("finds the jobs it took by their numbers, not by joining what it took", async () => {
    const steps = await stepsOf(await setup());
    const jobs = steps.filter((step) => step["Index Name"] === "job_pkey");
    expect(jobs.map((step) => step["Index Cond"])).toContainEqual(expect.stringContaining("seq = ANY"));
  });

  it("takes from each lane in the order of the index, without a sort of what waits", async () => {
    const at = await setup();
    await BELIEFS["fresh statistics"]?.(at);
    const steps = await stepsOf(at);
    const sorts = steps.filter((step) => step["Node Type"].includes("Sort"));
    const overWaiting = sorts.filter((step) => JSON.stringify(step).includes('"waiting"'));
    expect(overWaiting).toEqual([]);
  });
});

describe("a settle", () => {
  it("is fenced by job, epoch and claim, and asks for no state", () => {
    for (const { text } of [settleStatements("s", null).complete, settleStatements("s", null).retry])
      expect(text).not.toMatch(/where[^)]*\bstate\b/);
  });

  it("finds each job by its number, and writes no row that other workers write", async () => {
    const at = await setup();
    await likeOurs(at.client);
    for (const name of ["complete", "retry"]) {
      const [text, values] = hot(at.s)[name] as [string, string];
      await at.client.query(`prepare ${name} as ${text}`);
      const steps = await planOf(at.client, `execute ${name} (${values})`);
      const job = steps.find((step) => step["Relation Name"] === "job" && /Index Scan/.test(step["Node Type"]));
      expect(job?.["Index Name"]).toBe("job_pkey");
      const written = steps.filter((step) => step["Node Type"] === "ModifyTable").map((step) => step["Relation Name"]);
      // Each worker counts in rows of its own.
      const allowed = ["job", "ended", "waiting", "attempt", "worker", "cause_tick"];
      expect(written.filter((table) => !allowed.includes(table ?? ""))).toEqual([]);
    }
  });
});

describe("over a million waiting jobs", () => {
  const s = freshSchema();
  const client = new pg.Client({ connectionString: URL });
  const open = (): PostgresStore => createPostgresStore({ url: URL, schema: s });
  /** Of thirty looks or claims: a few blocks of an index each, and what a connection reads at first. */
  const FEW = 30 * 50;
  const times = async (act: () => Promise<unknown>): Promise<void> => {
    for (let n = 0; n < 30; n++) await act();
  };

  beforeAll(async () => {
    await client.connect();
    const store = open();
    await store.migrate();
    await store.enqueue([newJob({ type: "later", delayMs: 86_400_000 }), newJob({ type: "parked" })]);
    await store.close();
    // It would read blocks of the same table meanwhile.
    await client.query(`alter table ${s}.waiting set (autovacuum_enabled = off)`);
    const rows = (count: number, type: string, due: string): string =>
      `insert into ${s}.waiting (lane, run_at, seq) select l.base, ${due} + n, ${count} * 10 + n
       from ${s}.lane l, generate_series(1, ${count}) n where l.type = '${type}'`;
    const now = "(extract(epoch from now()) * 1000)::bigint";
    await client.query(rows(BIG, "later", `${now} + 86400000`));
    await client.query(rows(120_000, "parked", `${now} - 1000000`));
    await client.query(`analyze ${s}.waiting`);
  });
  afterAll(async () => {
    await client.query(`drop schema ${s} cascade`);
    await client.end();
  });

  it("an empty claim reads a few blocks", async () => {
    const blocks = await blocksRead(client, s, open(), async (store) => {
      const worker = await signUp(store);
      const { lanes } = await store.lanes(null, 100);
      const quotas = [{ lane: (lanes[0]?.lane as number) - 4, limit: 500 }];
      const request = { worker, quotas, limit: 500, ticket: 1, startedThrough: 0 };
      const { version: control } = await store.control();
      await times(async () =>
        expect((await store.claim({ ...request, control, nonce: nextNonce() })).jobs).toEqual([]),
      );
    });
    expect(blocks).toBeLessThan(FEW);
  });

  it("a claim behind 120,000 parked jobs reads a few blocks, and so does a look", async () => {
    expect(await blocksRead(client, s, open(), (store) => times(() => store.lanes(null, 100)))).toBeLessThan(FEW);
    let taken = 0;
    const blocks = await blocksRead(client, s, open(), async (store) => {
      const worker = await signUp(store);
      await store.enqueue(Array.from({ length: 40 }, () => newJob({ type: "wanted" })));
      const wanted = (await store.lanes(null, 100)).lanes.find(({ type }) => type === "wanted");
      const quotas = [{ lane: wanted?.lane as number, limit: 1 }];
      const { version: control } = await store.control();
      await times(async () => {
        const request = { worker, quotas, limit: 1, control, nonce: nextNonce(), ticket: 1, startedThrough: 0 };
        taken += (await store.claim(request)).jobs.length;
      });
    });
    expect(taken).toBe(30);
    expect(blocks).toBeLessThan(FEW);
  });
});
