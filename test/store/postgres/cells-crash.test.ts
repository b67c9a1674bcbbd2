// What a server that is killed takes back: nothing that people wrote and were answered, only the last of what workers saw.
import { expect, it, onTestFinished } from "vitest";
import { createRedrive } from "../../../src/index.ts";
import { startPostgres } from "../../support/postgres-server.ts";

it("schedules and the state of batches that were answered outlast a server that is killed; what workers saw need not", {
  timeout: 120_000,
}, async () => {
  // Nothing else puts the log on disk meanwhile.
  const settings = { wal_writer_delay: "10s", wal_level: "minimal", max_wal_senders: "0" };
  const server = await startPostgres({ durable: true, settings });
  onTestFinished(() => server.stop());
  const redrive = await createRedrive({ store: server.url(), log: "silent" });
  onTestFinished(() => redrive.close());
  const { store } = redrive;
  await redrive.schedules.set("nightly", { every: "1h", job: "report" });
  await store.setCells([{ kind: "batch", name: "photos", holder: "", version: 0, value: "{}" }]);
  await redrive.schedules.pause("nightly");
  await store.setCells([{ kind: "load", name: "", holder: "worker", version: null, value: "{}" }]);
  await server.kill();
  await server.start();
  const found = async () => (await store.cells([{ kind: "schedule" }, { kind: "batch" }, { kind: "load" }])).cells;
  await expect.poll(found, { timeout: 20_000 }).toMatchObject([
    { kind: "batch", name: "photos" },
    { kind: "schedule", name: "" },
    { kind: "schedule", name: "nightly", version: 2 },
  ]);
  expect(await redrive.schedules.get("nightly")).toMatchObject({ paused: true });
});
