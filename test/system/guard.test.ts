// The guard of children: the list it keeps, and what it ends once its process is gone.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it, onTestFinished } from "vitest";
import { GUARD_SCRIPT } from "../../src/system/guard.ts";
import { isAlive } from "../../src/system/processes.ts";
import { builtModule } from "../support/built.ts";
import { writeProgram } from "./programs.ts";

/** Beyond what a pid can be: no process has it. */
const NO_GROUP = 9_000_001;

async function isGone(pid: number, withinMs: number): Promise<boolean> {
  for (
    const from = performance.now();
    performance.now() - from < withinMs;
    await new Promise((go) => setTimeout(go, 20))
  )
    if (!isAlive(pid)) return true;
  return !isAlive(pid);
}

/** A process in a group of its own. */
function startSleeper(): number {
  const { pid = 0 } = spawn("sleep", ["300"], { detached: true, stdio: "ignore" });
  onTestFinished(() => void (isAlive(pid) && process.kill(pid, "SIGKILL")));
  return pid;
}

describe("the list of a guard", () => {
  it("stays as it is when a group leaves that is not in it, however often", () => {
    const input = `+ ${NO_GROUP} 0\n${`- ${NO_GROUP + 1}\n`.repeat(40)}`;
    const { status, stderr } = spawnSync("/bin/sh", ["-c", `ulimit -v 200000; ${GUARD_SCRIPT}`], {
      input,
      timeout: 20_000,
      // It ignores the others.
      killSignal: "SIGKILL",
    });
    expect({ status, said: stderr.toString() }).toEqual({ status: 0, said: "" });
  });

  it("loses a group that leaves, and ends the others", async () => {
    const [first, second, third] = [startSleeper(), startSleeper(), startSleeper()];
    const input = `+ ${first} 0\n+ ${second} 0\n+ ${third} 0\n- ${second}\n`;
    expect(spawnSync("/bin/sh", ["-c", GUARD_SCRIPT], { input }).status).toBe(0);
    expect([await isGone(first, 10_000), await isGone(third, 10_000), isAlive(second)]).toEqual([true, true, true]);
  });
});

describe("a guard that was killed itself", () => {
  it("is replaced by one that knows all groups that are still there", async () => {
    const [before, after] = [startSleeper(), startSleeper()];
    const program = writeProgram(
      "guarded.mjs",
      `import { execFileSync } from "node:child_process";
      import { guardGroup } from ${JSON.stringify(builtModule("system/guard.js"))};
      guardGroup(${before}, 0);
      const all = execFileSync("ps", ["-e", "-o", "pid=,ppid=,comm="]).toString().trim().split("\\n");
      const guard = all.map((line) => line.trim().split(/ +/)).find(([, parent, name]) => parent === String(process.pid) && /sh$/.test(name));
      process.kill(Number(guard[0]), "SIGKILL");
      setTimeout(() => guardGroup(${after}, 0), 500);
      setTimeout(() => process.kill(process.pid, "SIGKILL"), 1_000);`,
    );
    const child = spawn(process.execPath, [program], { stdio: "inherit" });
    onTestFinished(() => void child.kill("SIGKILL"));
    expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
    expect([await isGone(before, 10_000), await isGone(after, 10_000)]).toEqual([true, true]);
  });
});
