// The suite over the Postgres store on the oldest server that is supported, where one is installed.
import { describe, inject, it } from "vitest";
import { postgresWorld } from "../support/postgres-world.ts";
import { exercise } from "./exercise.ts";

const old = inject("postgres15");
if (old) exercise("postgres 15", () => postgresWorld(old));
else describe("postgres 15", () => it.skip("needs Debian's postgresql-15; npm brings 18 only", () => undefined));
