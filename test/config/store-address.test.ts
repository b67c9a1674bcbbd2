// What an address says of a store that is not open, and that the open store says the same.
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { storeAddress } from "../../src/config/store-address.ts";
import { openStore } from "../../src/open-store.ts";
import { testFolder } from "../support/database-file.ts";

const NOTICE = expect.stringContaining("sync=normal: writes are answered before they are on disk");

describe("the address of a store", () => {
  it.each([
    ["sqlite:x.db", { name: "sqlite", file: "x.db", notice: null }],
    ["sqlite:x.db?sync=normal", { name: "sqlite", file: "x.db", notice: NOTICE }],
    ["sqlite:what?.db?sync=full", { name: "sqlite", file: "what?.db", notice: null }],
    [
      "postgres://ann:geheim@localhost:5432/app?schema=mine",
      { name: "postgres", shown: "localhost:5432/app (schema mine)", file: null, notice: null },
    ],
  ])("%s says what the open store says, and no password", async (url, { file, ...said }) => {
    const folder = testFolder();
    const address = storeAddress(url, folder);
    const path = file === null ? {} : { file: join(folder, file), shown: join(folder, file) };
    const { url: absolute, inspect, ...description } = address;
    expect(description).toEqual({ file, ...said, ...path });
    expect(JSON.stringify(description)).not.toContain("geheim");
    expect(inspect).toBeTypeOf("function");
    const store = await openStore(absolute);
    onTestFinished(() => store.close());
    expect(store.describe()).toEqual(description);
  });

  it.each(["memory:", "sqlite::memory:", "sqlite::memory:?sync=normal"])("%s is refused", (url) => {
    expect(() => storeAddress(url, "/")).toThrow("a store in memory is gone when the command ends; name a file");
  });

  it.each(["sqlite:", "sqlite:a\0b", "redis://localhost", "x.db", 7])("%j is refused with what is expected", (url) => {
    expect(() => storeAddress(url, "/")).toThrow(/^store: expected sqlite:PATH or postgres:.*for example sqlite:/);
  });
});
