// Reschedule on Postgres: one transaction for all that it is asked, on one connection.
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { postgres } from "../../../src/store/postgres/index.ts";
import { newJob } from "../../support/new-job.ts";
import { testPool, testSchema } from "../../support/postgres-queue.ts";
import { sql } from "../../support/postgres-world.ts";

const SERVER = inject("postgres18");

async function opened(connections: number) {
  const { schema } = testSchema(SERVER);
  const store = postgres({ pool: testPool(SERVER, connections), schema });
  onTestFinished(() => store.close());
  const jobs = [newJob(), newJob()];
  await store.enqueue(jobs);
  const [a, b] = jobs.map(({ id }) => id) as [string, string];
  return { store, schema, a, b };
}

describe("reschedule", () => {
  it("changes nothing where one of its changes fails, also of those before it", async () => {
    const { store, schema, a, b } = await opened(2);
    await sql(
      SERVER,
      `create function ${schema}.refuse() returns trigger language plpgsql as $$ begin raise 'too far'; end $$;
       create trigger refuse before update on ${schema}.job for each row
         when (new.run_at > old.run_at + 3600000) execute function ${schema}.refuse()`,
    );
    const before = await store.get([a, b]);
    const changes = [
      { id: a, delayMs: 1_000 },
      { id: b, priority: 7 },
      { id: a, delayMs: 7_200_000 },
    ];
    await expect(store.reschedule(changes)).rejects.toThrow("too far");
    expect(await store.get([a, b])).toEqual(before);
    expect(await store.reschedule(changes.slice(0, 2))).toEqual(["changed", "changed"]);
  });

  it("to a priority that nobody had before needs no second connection", async () => {
    const { store, a, b } = await opened(1);
    const changes = [
      { id: a, priority: 9 },
      { id: b, priority: 3 },
      { id: a, priority: 4 },
    ];
    expect(await store.reschedule(changes)).toEqual(["changed", "changed", "changed"]);
    const [first, second] = await store.get([a, b]);
    expect([first?.priority, second?.priority]).toEqual([4, 3]);
  });
});
