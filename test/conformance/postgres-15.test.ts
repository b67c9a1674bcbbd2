// The suite over the Postgres store on the oldest server that is supported, where one is installed. What a statement means
// is the same on each server, and postgres.test.ts asks for it; what could differ is whether the old one knows all that a
// statement says. "life" sends every verb, and the others take the ways of the long statements.
// `npm run prove -- conformance` plays the whole suite.
import { describe, inject, it } from "vitest";
import { postgresWorld } from "../support/postgres-world.ts";
import { exerciseSome } from "./exercise.ts";

const GROUPS =
  "life, transitions, enqueue, unique, limited, claim, settle, expired, overdue, dead letters, causes, counts per minute, redrive, redrive runs, repair, prune, lanes that go, cells, event log".split(
    ", ",
  );

const old = inject("postgres15");
if (old) exerciseSome("postgres 15", GROUPS, () => postgresWorld(old));
else describe("postgres 15", () => it.skip("needs Debian's postgresql-15; npm brings 18 only", () => undefined));
