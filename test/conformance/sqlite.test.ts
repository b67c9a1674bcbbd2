// The suite over the SQLite store in this thread, with a clock of ours; every request and every answer is copied, as the
// store thread gets and sends them.
import { copyingSqliteWorld, sqliteWorld } from "../support/worlds.ts";
import { exercise, exerciseOnly } from "./exercise.ts";

exercise("sqlite", copyingSqliteWorld);

// In its own thread a store does the same without a copy.
exerciseOnly("sqlite, inline", ["life", "enqueue", "settle"], sqliteWorld);
