// Servers of tests end with the process that started them, whatever ends it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { sql } from "./postgres-world.ts";

// A frozen one gets five seconds from its own first process before that kills it.
const PATIENCE_MS = 60_000;
const RUNNER = fileURLToPath(new URL("../../node_modules/jiti/lib/jiti-cli.mjs", import.meta.url));
const PROGRAM = fileURLToPath(new URL("postgres-server-process.ts", import.meta.url));

/** Starts a server in a process of its own; gives that process, and where the server and its data are. */
async function startElsewhere() {
  const child = spawn(process.execPath, [RUNNER, PROGRAM], { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const says = async (): Promise<string> => String((await once(child.stdout, "data"))[0]).trim();
  const url = await says();
  const [row] = await sql(url, "show data_directory");
  return { child, url, says, folder: String(row?.["data_directory"]) };
}

describe.skipIf(process.platform === "win32")("a server whose process was killed", () => {
  it("ends, also a frozen one, and its folder is gone", { timeout: 3 * PATIENCE_MS }, async () => {
    const [running, frozen] = await Promise.all([startElsewhere(), startElsewhere()]);
    frozen.child.stdin.write("freeze\n");
    expect(await frozen.says()).toBe("frozen");
    for (const { child, folder } of [running, frozen]) {
      expect(existsSync(folder)).toBe(true);
      child.kill("SIGKILL");
    }
    for (const { url, folder } of [running, frozen]) {
      await expect.poll(() => existsSync(folder), { timeout: PATIENCE_MS }).toBe(false);
      await expect(sql(url, "select 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    }
  });
});
