// examples/http as a user runs it: the API in every server it names.
import { expect, it } from "vitest";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("../../examples/http/main.mjs", import.meta.url));

it("examples/http serves the API from every server it names", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM], { encoding: "utf8", timeout: 120_000 });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const lines = ["node:http", "Express", "Fastify", "Koa", "Hono", "Request to Response: 5 jobs"];
  expect(stdout).toBe(lines.map((line) => `✓ ${line}\n`).join(""));
});
