// The suite over the SQLite store in this thread, with a clock of ours.
import { sqliteWorld } from "../support/worlds.ts";
import { exercise } from "./exercise.ts";

exercise("sqlite, inline", sqliteWorld);
