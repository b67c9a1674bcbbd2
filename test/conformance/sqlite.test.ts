// The suite over the SQLite store: in this thread with a clock of ours, and behind its thread on real time.
import { sqliteWorld, threadedWorld } from "../support/worlds.ts";
import { exercise } from "./exercise.ts";

exercise("sqlite, inline", sqliteWorld);
exercise("sqlite, threaded", threadedWorld, {
  skip: [{ reason: "The store behind its thread runs on real time.", tests: "timed" }],
});
