// The SQLite store behind its thread keeps the contract: as programs use it, on real time.
import { threadedWorld } from "../support/worlds.ts";
import { exercise } from "./exercise.ts";

exercise("sqlite, threaded", threadedWorld, {
  // The rules of these are the same on both sides of the thread, or asked before it, and sqlite.test.ts asks for them there;
  // a thread for each takes long. "life" sends every verb through the thread, "enqueue", "settle" and "bytes" every field.
  without: [
    "transitions",
    "unique",
    "stale leases",
    "bad input",
    "limited",
    "lists by due time",
    "groups",
    "places in groups",
    "expired",
    "history",
    "lanes that go",
  ],
  skip: [
    { reason: "The store behind its thread runs on real time.", tests: "timed" },
    {
      reason: "The file is watched, and any write to it may be of another process.",
      tests: ["wakes nobody for a cell"],
    },
  ],
});
