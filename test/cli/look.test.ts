// How far lists and counts look: they say so, to people and to scripts, and go on where they ended.
import { expect, it } from "vitest";
import { createBench } from "../support/cli.ts";

const JOBS = `import { defineJob, PermanentError } from "redrive";
export const bad = defineJob("bad", { run() { throw new PermanentError("no"); } });
export const good = defineJob("good", { run() {} });
`;

/** Five jobs, of which the oldest is good, and the others are dead. */
async function five() {
  const bench = createBench();
  bench.write("jobs.mjs", JOBS);
  await bench.run(["enqueue", "good", "{}"]);
  await bench.run(["enqueue", "bad", "-"], { stdin: "1\n2\n3\n4\n" });
  await bench.run(["drain", "--jobs", "jobs.mjs"]);
  return bench;
}

it("a list says how far it looked, and goes on there", async () => {
  const bench = await five();
  const { document } = await bench.json(["jobs", "list", "--type", "good", "--look-at", "4"]);
  expect(document).toMatchObject({ items: [], next: expect.any(String), seenTo: expect.stringMatching(/Z$/) });
  const rest = await bench.json(["jobs", "list", "--type", "good", "--look-at", "4", "--cursor", document.next]);
  expect(rest.document.items).toMatchObject([{ type: "good", state: "completed" }]);
  expect([rest.document.next, "seenTo" in rest.document]).toEqual([null, false]);
  const shown = await bench.run(["jobs", "list", "--type", "good", "--look-at", "4"]);
  expect(shown.out).toBe("None so far.\n");
  expect(shown.err).toMatch(/^Looked at 4 jobs, up to one from .*\. More: add --cursor \d+\n$/);
  expect((await bench.run(["jobs", "list", "--type", "none"])).out).toBe("No job matches --type none.\n");
});

it("dead letters are listed and counted as far as asked", async () => {
  const bench = await five();
  const list = await bench.run(["dlq", "list", "--text", "nothing says this", "--look-at", "2"]);
  expect([list.out, list.err]).toEqual([
    "None so far.\n",
    expect.stringMatching(/^Looked at 2 dead letters, .*More: /),
  ]);
  const { document } = await bench.json(["dlq", "stats", "--look-at", "3"]);
  expect(document).toMatchObject({ total: 3, seenTo: expect.stringMatching(/Z$/) });
  const stats = await bench.run(["dlq", "stats", "--look-at", "3"]);
  expect(stats.err).toMatch(
    /^Looked at 3 dead letters, up to one from .*\. There may be more: add --look-at 1000000\n$/,
  );
  expect("seenTo" in (await bench.json(["dlq", "stats"])).document).toBe(false);
});

it("a look at nothing is refused", async () => {
  const bench = await five();
  for (const bad of ["0", "-1", "x", "1000001"]) {
    const { code, err } = await bench.run(["jobs", "list", `--look-at=${bad}`]);
    expect([code, err.split("\n").length]).toEqual([2, 2]);
  }
});
