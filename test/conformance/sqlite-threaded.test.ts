// The SQLite store behind its thread keeps the contract: as programs use it, on real time.
import { threadedWorld } from "../support/worlds.ts";
import { exerciseSome } from "./exercise.ts";

// The rules of the others are the same on both sides of the thread, and sqlite.test.ts asks for them there, over copies of
// every request and answer; a thread for each takes long. "life" sends every verb through the thread, "enqueue", "settle"
// and "bytes" every field; the rest is about what the client of the thread remembers, or two clients of one file.
// `npm run prove -- conformance` plays the whole suite.
const GROUPS = ["life", "enqueue", "settle", "bytes", "pause", "service", "cells"];

exerciseSome("sqlite, threaded", GROUPS, threadedWorld, [
  { reason: "The store behind its thread runs on real time.", tests: "timed" },
  {
    reason: "The file is watched, and any write to it may be of another process.",
    tests: ["wakes nobody for a cell"],
  },
]);
