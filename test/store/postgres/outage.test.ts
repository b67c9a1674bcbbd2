// Outages of a real server under running workers: killed, halted, its connections ended. Afterwards work goes on by
// itself, nothing is lost, nobody is charged, and the log stays readable (G8). An idle connection that breaks must not
// end the process: vitest fails the run where an error is caught by nobody.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { busy, pause } from "../../support/busy-workers.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { sql } from "../../support/postgres-world.ts";

describe("a server", { timeout: 240_000 }, () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres({ durable: true });
  });
  afterAll(() => server.stop());

  it("that is killed and started again costs nothing but time", async ({ onTestFinished }) => {
    const work = await busy(server.url(), { onTestFinished });
    await server.kill();
    await pause(1_500);
    await server.start();
    await work.resumes();
    await work.endsWell();
    expect(work.lines.some(({ text }) => text.includes("did not answer"))).toBe(true);
    expect(work.lines.filter(({ text }) => text.includes("is back")).length).toBeGreaterThan(0);
    await work.picksUp();
  });

  it("that ends every connection, again and again, costs nothing but time", async ({ onTestFinished }) => {
    const work = await busy(server.url(), { onTestFinished });
    for (let round = 0; round < 5; round++) {
      await sql(
        server.url(),
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'redrive'",
      );
      await pause(300);
    }
    await work.resumes();
    await work.endsWell();
    // Now that it idles, too: nobody asks anything when these end.
    await sql(
      server.url(),
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'redrive'",
    );
    await pause(1_500);
    await work.picksUp();
  });

  it("that is halted for three seconds costs nothing but time", async ({ onTestFinished }) => {
    const work = await busy(server.url(), { onTestFinished });
    server.freeze(true);
    await pause(3_000);
    const before = work.completed();
    server.freeze(false);
    await work.resumes();
    await work.endsWell();
    // Ten runs and what was claimed ahead could end meanwhile, but nothing could be settled.
    expect(before).toBeLessThan(work.ids.length);
    await work.picksUp();
  });

  it("that is halted for three leases makes nobody give up the living", async ({ onTestFinished }) => {
    const work = await busy(server.url(), { onTestFinished, workers: 3, lease: "1200ms", heartbeat: "200ms" });
    server.freeze(true);
    await pause(3_600);
    server.freeze(false);
    await work.resumes();
    await work.endsWell();
  });
});
