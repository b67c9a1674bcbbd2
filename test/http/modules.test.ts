// What a program loads that never serves HTTP: nothing of the packages behind the API.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { builtModule } from "../support/built.ts";
import { testFolder } from "../support/database-file.ts";

const COUNT = new URL("../support/count-modules.mjs", import.meta.url).href;

it.each([
  ["index.js", false],
  ["http/client.js", false],
  ["http/index.js", true],
])("%s: loads a server or a schema library: %s", (file, isLoading) => {
  const list = join(testFolder(), "modules.txt");
  const { status, stderr } = spawnSync(process.execPath, ["--import", COUNT, fileURLToPath(builtModule(file))], {
    encoding: "utf8",
    env: { ...process.env, REDRIVE_MODULES: list },
    timeout: 60_000,
  });
  expect(status, stderr).toBe(0);
  expect(/node_modules\/(?:hono|@hono|valibot|@valibot)\//.test(readFileSync(list, "utf8"))).toBe(isLoading);
});
