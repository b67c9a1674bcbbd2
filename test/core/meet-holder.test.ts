// What becomes of a new job whose key is taken, for every mode of keys and every state of the job that holds the key.
import { expect, it } from "vitest";
import type { State } from "../../src/core/job.ts";
import { meetHolder, type UniqueMode } from "../../src/core/new-job.ts";
import { newJob } from "../support/new-job.ts";

const STATES: readonly (State | null)[] = ["queued", "running", "completed", "dead", "cancelled", null];
/** Per mode, what happens in the order of the states. */
const TABLE: Readonly<Record<Exclude<UniqueMode, "key">, string>> = {
  queued: "duplicate create create create create create",
  active: "duplicate duplicate create create create create",
  replace: "replace create create create create create",
  debounce: "replace create create create create create",
};

it.each(Object.entries(TABLE))("with %s it is %s", (unique, row) => {
  const job = newJob({ key: "k", unique: unique as UniqueMode, digest: "d" });
  expect(STATES.map((state) => meetHolder(job, { id: "other", digest: "e", state })).join(" ")).toBe(row);
  for (const state of STATES) expect(meetHolder(job, { id: job.id, digest: "e", state })).toBe("duplicate");
});

it("with one job for each key it is the same body that counts, whatever the state", () => {
  const job = newJob({ key: "k", unique: "key", digest: "d" });
  for (const state of STATES) {
    expect(meetHolder(job, { id: "other", digest: "d", state })).toBe("duplicate");
    expect(meetHolder(job, { id: job.id, digest: "e", state })).toBe("conflict");
  }
});
