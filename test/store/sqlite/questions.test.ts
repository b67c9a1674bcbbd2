// What people ask is answered beside the store thread, and never before what was answered.
import { expect, it } from "vitest";
import { connect, testPath } from "../../support/database-file.ts";
import { newJob } from "../../support/new-job.ts";
import { threadedStore } from "../../support/store-processes.ts";

it("people are answered while the store thread waits for another process", async () => {
  const path = testPath();
  const store = await threadedStore(path);
  const first = newJob();
  await store.enqueue([first]);
  await store.list({ limit: 1 });
  const other = connect(path);
  other.exec("begin immediate");
  let written = false;
  const writing = store.enqueue([newJob()]).then(() => (written = true));
  expect((await store.list({ limit: 10 })).items.map(({ id }) => id)).toEqual([first.id]);
  expect(await store.count()).toMatchObject({ queued: 1 });
  expect(await store.history(first.id)).toEqual([]);
  expect(await store.deadLetters({ limit: 1 })).toEqual({ items: [], next: null });
  expect(await store.tally({})).toMatchObject({ total: 0 });
  expect(written).toBe(false);
  other.exec("rollback");
  await writing;
  expect(await store.count()).toMatchObject({ queued: 2 });
});

it("a question sees everything that was answered before it", async () => {
  const store = await threadedStore(testPath());
  for (let queued = 1; queued <= 50; queued++) {
    await store.enqueue([newJob()]);
    expect(await store.count()).toMatchObject({ queued });
  }
});
