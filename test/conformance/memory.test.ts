// The suite over the memory store, the reference.
import { memoryWorld } from "../support/worlds.ts";
import { exercise } from "./exercise.ts";

exercise("memory", memoryWorld);
