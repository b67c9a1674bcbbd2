// New jobs are checked once: at the door of the store, unless the set they come in says that they were.
import { expect, it } from "vitest";
import { asChecked, checkNewJobs } from "../../src/store/checked-jobs.ts";
import { newJob } from "../support/new-job.ts";

const REFUSED = "priority: expected a whole number from 0 to 9";

it("the door checks every job of a set", () => {
  expect(() => checkNewJobs([newJob(), newJob({ priority: 77 })])).toThrow(REFUSED);
  expect(() => checkNewJobs([newJob(), newJob()])).not.toThrow();
});

it("a set that was checked passes, and says nothing of its jobs in another set", () => {
  const jobs = [newJob({ priority: 77 })];
  expect(() => checkNewJobs(asChecked(jobs))).not.toThrow();
  expect(() => checkNewJobs([...jobs])).toThrow(REFUSED);
});
