// Jobs by the keys that their producers gave them: in lists, by `--key`, and in place of an id; and the release that ran.
import { expect, it } from "vitest";
import { type Bench, createBench, JOBS_TS } from "../support/cli.ts";

/** Two dead jobs have had the key order-17, one after the other; a third job died without a key. */
async function orders(): Promise<Bench & { readonly older: string; readonly newer: string; readonly plain: string }> {
  const bench = createBench();
  bench.write("jobs.ts", JOBS_TS);
  const ids: string[] = [];
  for (const [release, flags] of [
    ["1.4.1", ["--key", "order-17"]],
    ["1.5.0", ["--key", "order-17", "--unique", "queued"]],
    ["1.5.0", []],
  ] as const) {
    const { document } = await bench.json(["enqueue", "broken", "{}", ...flags]);
    ids.push(document.ids[0]);
    await bench.run(["drain", "--jobs", "jobs.ts", "--quiet", "--release", release]);
  }
  const [older = "", newer = "", plain = ""] = ids;
  return { ...bench, older, newer, plain };
}

const WIDE = { columns: 200, env: { NO_COLOR: "1" } };

it("keys stand in the lists of jobs and dead letters, and only where there are any", async () => {
  const bench = await orders();
  const jobs = await bench.run(["jobs", "list"], WIDE);
  expect(jobs.out).toMatch(/^ID +TYPE +KEY +STATE/);
  expect(jobs.out.match(/ order-17 /g)).toHaveLength(2);
  const letters = await bench.run(["dlq", "list"], WIDE);
  expect(letters.out).toMatch(/^ID +TYPE +KEY +REASON/);
  expect((await bench.run(["jobs", "list", "--type", "hello"], WIDE)).out).not.toContain("KEY");
  const { document } = await bench.json(["dlq", "list"]);
  expect(document.items).toMatchObject([{ key: null }, { key: "order-17" }, { key: "order-17" }]);
  const history = await bench.json(["jobs", "history", bench.older]);
  expect(history.document.items).toMatchObject([{ jobId: bench.older, key: "order-17" }]);
});

it("jobs show, explain and history take a key, and say where several jobs have had it", async () => {
  const bench = await orders();
  const show = await bench.json(["jobs", "show", "order-17"]);
  expect(show.document).toMatchObject({ id: bench.newer, key: "order-17", history: [{ key: "order-17" }] });
  expect(show.err).toBe(
    'Several jobs have had the key "order-17". This is the newest; `redrive jobs list --key order-17` lists them.\n',
  );
  expect((await bench.run(["jobs", "explain", "order-17"])).out).toContain(bench.newer);
  expect((await bench.json(["jobs", "history", "order-17"])).document.items).toMatchObject([{ jobId: bench.newer }]);
  expect((await bench.json(["jobs", "show", bench.older])).err).toBe("");
  await bench.run(["enqueue", "hello", "{}", "--key", `it's ${"x".repeat(80)}`]);
  const long = await bench.json(["jobs", "show", `it's ${"x".repeat(80)}`]);
  expect(long.document).toMatchObject({ type: "hello" });
  expect(long.err).toBe("");
  for (const none of ["order-18", "x".repeat(80)]) {
    const { code, err } = await bench.run(["jobs", "show", none]);
    expect([code, err]).toEqual([1, expect.stringContaining(`There is no job`)]);
  }
});

it("an id goes before a key of the same text", async () => {
  const bench = await orders();
  await bench.run(["enqueue", "hello", "{}", "--key", bench.older]);
  expect((await bench.json(["jobs", "show", bench.older])).document).toMatchObject({ id: bench.older, type: "broken" });
});

it("dlq show, stats, retry and remove take --key", async () => {
  const bench = await orders();
  const show = await bench.json(["dlq", "show", "--key", "order-17"]);
  expect(show.document).toMatchObject({ id: bench.newer, key: "order-17" });
  expect(show.err).toContain("This one died last; `redrive dlq list --key order-17` lists them.");
  expect((await bench.run(["dlq", "show", "--key", "order-18"])).err).toContain('with the key "order-18"');
  for (const args of [
    ["dlq", "show"],
    ["dlq", "show", bench.older, "--key", "order-17"],
  ])
    expect((await bench.run(args)).err).toContain("expected a job id or --key");
  expect((await bench.json(["dlq", "stats", "--key", "order-17"])).document).toMatchObject({ total: 2 });
  expect((await bench.run(["dlq", "retry", "--key", "order-18"])).out).toBe(
    "No dead letter matches --key order-18; nothing was redriven.\n",
  );
  expect((await bench.json(["dlq", "retry", "--key", "order-17"])).document).toMatchObject({ redriven: 2 });
  await bench.run(["drain", "--jobs", "jobs.ts", "--quiet"]);
  const removed = await bench.json(["dlq", "remove", "--key", "order-17", "--yes"]);
  expect(removed.document).toMatchObject({ removed: 2 });
  expect((await bench.json(["dlq", "list"])).document.items).toMatchObject([{ id: bench.plain }]);
});

it("shows the release that ran a failure, and no failure of an earlier generation", async () => {
  const bench = await orders();
  const letter = await bench.json(["dlq", "show", bench.older]);
  expect(letter.document).toMatchObject({ release: "1.4.1", history: [{ release: "1.4.1" }] });
  const text = (await bench.run(["dlq", "show", bench.older], WIDE)).out;
  expect(text).toMatch(/\n {2}release +1\.4\.1\n/);
  expect(text).toMatch(/WORKER +RELEASE +CLASS/);
  await bench.run(["dlq", "retry", bench.older]);
  const { document } = await bench.json(["jobs", "show", bench.older]);
  expect(document).toMatchObject({ state: "queued", generation: 2, failure: null, history: [{ release: "1.4.1" }] });
  const shown = (await bench.run(["jobs", "show", bench.older], WIDE)).out;
  expect(shown).toContain("\nAttempts\n");
  expect(shown).not.toContain("\nError\n");
  expect((await bench.run(["jobs", "list", "--state", "queued"], WIDE)).out).not.toContain("no such file");
  expect((await bench.json(["dlq", "show", bench.older])).document.failure.message).toContain("no such file");
});
