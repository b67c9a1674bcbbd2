// Times that no calendar has: refused where they are given, shown as far as it goes where they are stored.
import { expect, it } from "vitest";
import { createBench } from "../support/cli.ts";

it.each([
  "2027-02-30",
  "2027-02-29T08:00:00Z",
  "2027-04-31",
  "2027-13-01",
  "2027-00-10",
  "2027-01-00",
  "2027-01-01T25:00Z",
])("--run-at %s is refused", async (time) => {
  const bench = createBench();
  for (const args of [
    ["enqueue", "thing", "{}", "--run-at", time],
    ["jobs", "reschedule", "--all", "--run-at", time],
  ])
    expect(await bench.run(args)).toMatchObject({ code: 2, err: expect.stringContaining(`got "${time}"`) });
});

it.each(["2028-02-29", "2027-12-31T23:59:59Z", "2027-01-31T08:00:00+02:00"])("--run-at %s is taken", async (time) => {
  const bench = createBench();
  expect(await bench.run(["enqueue", "thing", "{}", "--run-at", time])).toMatchObject({ code: 0 });
  const { items } = (await bench.json(["jobs", "list"])).document;
  expect(Date.parse(items[0].runAt)).toBe(Date.parse(time));
});

it("a row with an impossible time does not keep the others from being shown", async () => {
  const bench = createBench();
  await bench.run(["enqueue", "thing", "-"], { stdin: "1\n2\n" });
  const before = (await bench.json(["jobs", "list"])).document.items;
  bench.sql("update job set created_at = 9007199254740991, run_at = 9007199254740991 where seq = 1 returning 1");
  const { code, document } = await bench.json(["jobs", "list"]);
  expect({ code, ids: document.items.map(({ id }: { id: string }) => id) }).toEqual({
    code: 0,
    ids: before.map(({ id }: { id: string }) => id),
  });
  expect(document.items[1].createdAt).toBe("+275760-09-13T00:00:00.000Z");
  expect((await bench.run(["jobs", "list"])).code).toBe(0);
  const shown = await bench.run(["jobs", "show", before[1].id]);
  expect(shown).toMatchObject({ code: 0, out: expect.stringContaining("+275760-09-13 00:00:00Z") });
});
