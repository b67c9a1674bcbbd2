// `enqueue TYPE - --group`: lines become jobs in their order, on a server that could let writes overtake each other.
import { expect, inject, it } from "vitest";
import { createBench } from "../support/cli.ts";
import { testSchema } from "../support/postgres-queue.ts";
import { sql } from "../support/postgres-world.ts";

it("keeps the order of the lines on Postgres", async () => {
  const { url, schema } = testSchema(inject("postgres18"));
  const bench = createBench();
  const lines = Array.from({ length: 100 }, (_, n) => n);
  for (const group of ["a", "b", "c"]) {
    const stdin = lines.map((n) => `{"n":${n}}\n`).join("");
    await bench.run(["enqueue", "step", "-", "--group", group, "--store", url], { stdin });
  }
  const rows = await sql(
    inject("postgres18"),
    `select (payload::json->>'n')::int as n from ${schema}.job order by seq`,
  );
  expect(rows.map(({ n }) => n)).toEqual([...lines, ...lines, ...lines]);
});
