// Short chaos runs: real processes on one file, or on a server that fails too. And the proof that the way from history
// files to a verdict works: with actors broken on purpose the same command fails and says why. All are compiled once; the
// command line compiles for each run.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compileChaos } from "./prepare.mjs";

const COMMAND = fileURLToPath(new URL("../../scripts/prove.mjs", import.meta.url));
const CACHE = fileURLToPath(new URL("../../node_modules/.cache", import.meta.url));
// The runs take a tenth of this on an idle machine.
const PATIENCE_MS = 300_000;
const NOT_TRIED = "no stale write was refused, so fencing was not tried";
let folder: string;

beforeAll(() => {
  mkdirSync(CACHE, { recursive: true });
  folder = mkdtempSync(join(CACHE, "redrive-chaos-"));
  compileChaos(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const chaos = (...args: string[]) => node(join(folder, "test/chaos/main.js"), ...args);

async function node(...args: string[]): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(process.execPath, args, { stdio: "pipe" });
  // Its actors end with it: it is asked, not killed.
  const timer = setTimeout(() => child.kill("SIGTERM"), PATIENCE_MS - 5_000);
  let output = "";
  child.stdout.on("data", (text) => (output += text));
  child.stderr.on("data", (text) => (output += text));
  const code = await new Promise<number | null>((resolve) => {
    child.on("close", resolve);
  });
  clearTimeout(timer);
  return { code, output };
}

/** Whether a pause catches a run in flight is chance; nothing else may be found. */
function expectNothingFound(code: number | null, output: string): void {
  const [found = ""] = output.split(/^chaos \w+ /m);
  expect(["", `${NOT_TRIED}\n`], output).toContain(found);
  expect(code, output).toBe(found === "" ? 0 : 1);
  const [, kept = ""] = /are kept in (\S+)/.exec(output) ?? [];
  if (kept.includes("redrive-chaos-")) rmSync(kept, { recursive: true, force: true });
}

describe.skipIf(process.platform === "win32")("npm run prove -- chaos", { timeout: PATIENCE_MS }, () => {
  // Real processes: whether one of the pauses catches a run in flight is chance, so it may be tried again.
  it("finds nothing lost and nothing completed twice through 2 kills, 3 pauses and a step of the clock", {
    retry: 3,
  }, async () => {
    const faults = ["--kills", "2", "--pauses", "3", "--clock-steps", "1", "--seed", "2"];
    const { code, output } = await chaos("--store", "sqlite", "--workers", "3", ...faults);
    expect(output).toMatch(/ 2 kills, 3 pauses, 1 clock steps, 0 lost, 0 double-acked, [1-9]\d* stale refused, /);
    expect(code, output).toBe(0);
  });

  it("finds the same on a server that is killed, behind a network that fails", async () => {
    const faults = ["--kills", "1", "--pauses", "1", "--clock-steps", "1", "--seed", "3"];
    const server = ["--server-kills", "1", "--proxy-faults", "3"];
    const { code, output } = await chaos("--store", "postgres", "--workers", "3", ...faults, ...server);
    expect(output).toMatch(
      / 1 kills, 1 pauses, 1 clock steps, 1 server kills, 1 ended backends, 1 resets, 1 silences, 1 lost answers, 0 lost, 0 double-acked, /,
    );
    expect(output).toMatch(/ all busy again within \d+\.\d s .* Node \d.*, Postgres 18\..*, pg 8\./);
    expectNothingFound(code, output);
  });

  // As above.
  it("fails on actors that lose jobs and ignore the fence, and keeps their histories", { retry: 3 }, async () => {
    const args = ["--store", "sqlite", "--kills", "1", "--pauses", "2", "--clock-steps", "0", "--seed", "2"];
    const { code, output } = await chaos(...args, "--workers", "3", "--sabotage", "forgetful,unfenced");
    const [, kept = ""] = /are kept in (\S+)/.exec(output) ?? [];
    try {
      expect(code, output).toBe(1);
      expect(output).toMatch(/^R1 job \S+: confirmed, but lost$/m);
      expect(output).toMatch(/^R5 job \S+: run \d+ ended twice under one lease$/m);
      expect(output).toContain(NOT_TRIED);
      expect(output).toContain(`npm run prove -- chaos ${args.join(" ")} --workers 3 --sabotage forgetful,unfenced`);
      const again = await chaos("--judge", kept);
      expect(again.code, again.output).toBe(1);
      expect(again.output).toMatch(/^R1 job \S+: confirmed, but lost$/m);
    } finally {
      if (kept.includes("redrive-chaos-")) rmSync(kept, { recursive: true, force: true });
    }
  });

  it("refuses what it cannot do", async () => {
    expect(await node(COMMAND, "chaos", "--kills", "many")).toMatchObject({
      code: 2,
      output: expect.stringContaining("--kills must be"),
    });
    expect(await chaos("--store", "sqlite", "--server-kills", "1")).toMatchObject({
      code: 2,
      output: expect.stringContaining("--server-kills needs --store postgres"),
    });
  });
});
