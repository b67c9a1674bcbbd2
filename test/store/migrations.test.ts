// What a program does with a store of any version, and what a list of migrations must be like.
import { describe, expect, it } from "vitest";
import {
  checkOpening,
  missingSteps,
  type Migration,
  newerNotice,
  openingOf,
  planFrom,
} from "../../src/store/migrations.ts";
import { MIGRATIONS as ON_POSTGRES } from "../../src/store/postgres/schema.ts";
import { MIGRATIONS as ON_SQLITE } from "../../src/store/sqlite/schema.ts";

describe("a program that knows version 3", () => {
  it.each([
    ["nothing", 0, 0, "migrate"],
    ["version 1", 1, 1, "migrate"],
    ["version 2", 2, 2, "migrate"],
    ["version 3", 3, 1, "use"],
    ["version 3 for itself alone", 3, 3, "use"],
    ["version 4, readable by 1", 4, 1, "use newer"],
    ["version 4, readable by 3", 4, 3, "use newer"],
    ["version 4 for itself alone", 4, 4, "refuse newer"],
    ["version 9, readable by 3", 9, 3, "use newer"],
    ["version 9, readable by 4", 9, 4, "refuse newer"],
    ["version 9 that says nothing", 9, null, "refuse newer"],
    ["version 1 that says nothing", 1, null, "refuse unreleased"],
    ["version 3 that says nothing", 3, null, "refuse unreleased"],
    ["no version, but a place for one", 0, null, "refuse unreleased"],
    ["an impossible version", -1, 0, "refuse unreleased"],
  ] as const)("finds %s", (_what, version, readableBy, opening) => {
    expect(openingOf({ version, readableBy }, 3)).toBe(opening);
    const check = (): string => checkOpening({ version, readableBy }, 3, "The store");
    if (!opening.startsWith("refuse")) expect(check()).toBe(opening);
    else expect(check).toThrow(expect.objectContaining({ code: "store_unusable" }));
  });

  it("says what it expected, what came and what to do", () => {
    expect(() => checkOpening({ version: 9, readableBy: 4 }, 3, "The store")).toThrow(
      "The store has schema version 9, for programs that know version 4 or newer; this Redrive knows versions up to 3. Update redrive, or restore a backup from before the upgrade.",
    );
    expect(() => checkOpening({ version: 1, readableBy: null }, 3, "The store")).toThrow(
      "The store has a schema from before Redrive 0.1.0, from which no migration leads. Name another store, or delete this one to begin without its jobs.",
    );
  });

  it("has something to say only about a newer store", () => {
    expect([0, 2, 3].map((version) => newerNotice(version, 3))).toEqual([null, null, null]);
    expect(newerNotice(4, 3)).toMatch(/schema version 4, newer than version 3 of this redrive/);
  });
});

describe("a plan", () => {
  const list = [1, 1, 2].map((readableBy, at) => ({ sql: `to ${at + 1}`, readableBy }));

  it("has the steps that are missing, with their numbers", () => {
    expect(missingSteps({ version: 1, readableBy: 1 }, list)).toEqual([
      { version: 2, sql: "to 2", readableBy: 1 },
      { version: 3, sql: "to 3", readableBy: 2 },
    ]);
    expect(missingSteps({ version: 4, readableBy: 1 }, list)).toEqual([]);
  });

  it("tells how far it can be rolled back", () => {
    expect(planFrom({ version: 1, readableBy: 1 }, list, ["x"])).toEqual({
      from: 1,
      to: 3,
      known: 3,
      readableBy: 2,
      statements: ["x"],
    });
    expect(planFrom({ version: 5, readableBy: 3 }, list, [])).toMatchObject({
      from: 5,
      to: 5,
      known: 3,
      readableBy: 3,
    });
  });
});

/** What is wrong with a list of migrations; null if nothing is. */
function faultIn(migrations: readonly Migration<unknown>[]): string | null {
  for (const [at, { readableBy }] of migrations.entries()) {
    const version = at + 1;
    if (readableBy < 1 || readableBy > version) return `version ${version} is readable by ${readableBy}`;
    if (readableBy < (migrations[at - 1]?.readableBy ?? 1))
      return `version ${version} is readable by older programs again`;
    if (version > 1 && readableBy === version)
      return `version ${version} shuts out ${version - 1}: add first, and remove one version later`;
  }
  return null;
}

describe("a list of migrations", () => {
  const listOf = (...by: readonly number[]) => by.map((readableBy) => ({ sql: "", readableBy }));

  it.each([
    [[1], null],
    [[1, 1, 2, 3], null],
    [[1, 1, 1], null],
    [[0], "version 1 is readable by 0"],
    [[2], "version 1 is readable by 2"],
    [[1, 1, 2, 1], "version 4 is readable by older programs again"],
    [[1, 2], "version 2 shuts out 1: add first, and remove one version later"],
  ])("readable by %j", (by, fault) => expect(faultIn(listOf(...by))).toBe(fault));

  it.each([
    ["SQLite", ON_SQLITE],
    ["Postgres", ON_POSTGRES],
  ])("of %s lets version N and N−1 work side by side", (_store, migrations) => {
    expect(faultIn(migrations)).toBeNull();
  });
});
