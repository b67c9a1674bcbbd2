// Locks of other processes, with waiting in the test's hands: what the engine waits for, how long, and for whom.
import { describe, expect, it, onTestFinished } from "vitest";
import { type Engine, openEngine, type Reply, type Request } from "../../../src/store/sqlite/engine.ts";
import { packNewJobs } from "../../../src/store/sqlite/wire.ts";
import { connect, testPath } from "../../support/database-file.ts";
import { newJob } from "../../support/new-job.ts";

const PATIENCE_MS = 5_000;

/** Opens an engine whose waits pass in no time and call back. */
function setup(path: string, onWait: () => void = () => undefined) {
  const waited = { ms: 0, times: 0 };
  const blockMs = (ms: number) => {
    waited.ms += ms;
    waited.times += 1;
    onWait();
  };
  const open = (): Engine => {
    const engine = openEngine({ path, clock: () => Math.floor(1_000_000 + waited.ms), blockMs, random: () => 0.5 });
    onTestFinished(() => engine.close());
    return engine;
  };
  return { open, waited };
}

const enqueue = (): Request => ({ verb: "enqueue", args: [packNewJobs([newJob()])] });
const count: Request = { verb: "count", args: [] };
const codeOf = (reply: Reply | undefined) => (reply && "error" in reply ? reply.error.code : "answered");

describe("a lock of another process", () => {
  it("is waited for when a new file is opened", () => {
    const path = testPath();
    const holder = connect(path);
    holder.exec("begin exclusive");
    let held = true;
    const { open, waited } = setup(path, () => {
      if (held) holder.exec("commit");
      held = false;
    });
    expect(codeOf(open().carryOut([enqueue()])[0])).toBe("answered");
    expect(waited.times).toBeGreaterThan(0);
  });

  it("is waited for by a write", () => {
    const path = testPath();
    const { open, waited } = setup(path, () => {
      if (waited.times === 10) holder.exec("commit");
    });
    const engine = open();
    const holder = connect(path);
    holder.exec("begin immediate");
    expect(codeOf(engine.carryOut([enqueue()])[0])).toBe("answered");
    expect(waited.times).toBe(10);
  });

  it("does not hold up a read while others write", () => {
    const path = testPath();
    const { open, waited } = setup(path);
    const engine = open();
    connect(path).exec("begin immediate");
    expect(codeOf(engine.carryOut([count])[0])).toBe("answered");
    expect(waited.times).toBe(0);
  });

  it("that lasts is given up after the patience, and the file works again afterwards", () => {
    const path = testPath();
    const { open, waited } = setup(path);
    const engine = open();
    const holder = connect(path);
    holder.exec("begin immediate");
    const [reply] = engine.carryOut([enqueue()]);
    expect(reply).toEqual({ error: expect.objectContaining({ code: "store_unavailable" }) });
    expect(reply).toEqual({
      error: expect.objectContaining({ message: expect.stringContaining("locked by another") }),
    });
    expect(waited.ms).toBeGreaterThanOrEqual(PATIENCE_MS);
    expect(waited.ms).toBeLessThan(PATIENCE_MS + 100);
    holder.exec("commit");
    expect(codeOf(engine.carryOut([enqueue()])[0])).toBe("answered");
  });

  it("that lasts is waited for once by a whole group, not once by each of its members", () => {
    const path = testPath();
    const { open, waited } = setup(path);
    const engine = open();
    connect(path).exec("begin immediate");
    const replies = engine.carryOut(Array.from({ length: 20 }, enqueue));
    expect(replies.map(codeOf)).toEqual(Array.from({ length: 20 }, () => "store_unavailable"));
    expect(waited.ms).toBeLessThan(PATIENCE_MS + 100);
  });
});
