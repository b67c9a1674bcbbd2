// The URL of a SQLite store: the path, and how safely it is written.
import { describe, expect, it } from "vitest";
import { readSqliteUrl, sqliteUrl } from "../../../src/store/sqlite/address.ts";

describe("the URL of a SQLite store", () => {
  it.each([
    ["sqlite:jobs.db", "jobs.db", "full"],
    ["sqlite:/a b/jobs.db?sync=full", "/a b/jobs.db", "full"],
    ["sqlite:jobs.db?sync=normal", "jobs.db", "normal"],
    ["sqlite:what?.db?sync=normal", "what?.db", "normal"],
  ])("%s names a file and how it is written", (url, path, sync) => {
    expect(readSqliteUrl(url)).toEqual({ path, sync });
  });

  it.each(["off", "NORMAL", "", "normal&x=1", "full&sync=normal", "normal?sync=full", "normal?"])(
    "refuses sync=%s",
    (sync) => {
      expect(() => readSqliteUrl(`sqlite:jobs.db?sync=${sync}`)).toThrow(/expected \?sync=full or \?sync=normal/);
    },
  );

  it("refuses anything else behind the path, and says how to name a file with a question mark", () => {
    expect(() => readSqliteUrl("sqlite:jobs.db?mode=ro")).toThrow(/got "\?mode=ro"/);
    expect(() => readSqliteUrl("sqlite:jobs.db?sync=off?sync=normal")).toThrow(/got "\?sync=off\?sync=normal"/);
    expect(() => readSqliteUrl("sqlite:what?.db")).toThrow(
      /where the \? belongs to the file's name, write \?sync=full/,
    );
    expect(readSqliteUrl("sqlite:what?.db?sync=full")).toEqual({ path: "what?.db", sync: "full" });
  });

  it("refuses a URL of another store behind sqlite:, and shows nothing of it but its kind", () => {
    for (const url of ["postgres://u:pw@h/db", "postgresql://h/db?password=pw", "redis://:pw@h"])
      expect(() => readSqliteUrl(`sqlite:${url}`)).toThrow(
        `store: expected sqlite: and the path of a file; got "sqlite:${url.split(":")[0]}://…"; leave out sqlite:, or name a file`,
      );
    expect(readSqliteUrl("sqlite:C://jobs.db")).toMatchObject({ path: "C://jobs.db" });
  });

  it("is null for another store, and comes out as it went in", () => {
    expect(readSqliteUrl("postgres://localhost/db?sync=normal")).toBeNull();
    for (const url of ["sqlite:a.db", "sqlite:a.db?sync=normal", "sqlite:what?/a.db?sync=full"]) {
      const read = readSqliteUrl(url);
      expect(read && sqliteUrl(read)).toBe(url);
    }
  });
});
