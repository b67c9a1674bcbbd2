// The rounds of `redrive batch` where it is not alone: other processes of the same run, pauses, and what was done before.
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { createBench, type Document, type World } from "../support/cli.ts";
import { connect } from "../support/database-file.ts";

/** A bench with a command of these lines of shell, which find the batch in $text and note it. */
function setup(lines: string) {
  const bench = createBench();
  bench.write("entry.sh", `text=$(cat); echo "$text" >> runs.txt; ${lines}\n`);
  const batch = (name: string, flags: readonly string[] = []): string[] => {
    return ["batch", "--name", name, "--input", "items.json", ...flags, "--", "sh", "entry.sh"];
  };
  const items = (...all: readonly unknown[]): void =>
    writeFileSync(join(bench.folder, "items.json"), JSON.stringify(all));
  const journal = join(bench.folder, "runs.txt");
  const noted = (): number => (existsSync(journal) ? readFileSync(journal, "utf8").trim().split("\n").length : 0);
  const begun = (runs = 1): Promise<void> =>
    vi.waitFor(() => expect(noted()).toBeGreaterThanOrEqual(runs), { timeout: 20_000, interval: 20 });
  const both = async (args: readonly string[], world?: World) => {
    const { code, out, err } = await bench.run(["--json", ...args], world);
    return { code, lines: err.trim().split("\n"), document: JSON.parse(out) as Document };
  };
  return { ...bench, batch, items, begun, both };
}

describe("a run", () => {
  it("of two processes waits for what the other has, and counts as one", async () => {
    const { batch, items, begun, both, sql } = setup(`case "$text" in *slow*) sleep 2.5;; *bad*) exit 3;; esac`);
    items("slow", "bad", "slow too");
    const args = batch("shared", ["--batch-size", "1", "--max-retries", "2", "--parallel", "3"]);
    const first = both(args);
    await begun();
    const all = await Promise.all([first, both(args)]);
    const document = { items: 3, succeeded: 2, failed: 1, retried: 1, rounds: 2 };
    for (const { code, document: said } of all) expect({ code, said }).toMatchObject({ code: 1, said: document });
    const { lines } = all[1];
    expect(lines[0]).toBe("resuming run 1 of shared");
    expect(lines.filter((line) => line.startsWith("waiting: "))[0]).toMatch(
      /^waiting: \d items? run by another process$/,
    );
    expect(lines.length).toBeLessThan(10);
    for (const line of all.flatMap((each) => each.lines)) expect(line).not.toContain("0 items");
    const [cell] = sql("select value from cell where kind = 'batch'");
    expect(JSON.parse(String(cell?.[0]))).toMatchObject({ rounds: 2, isDone: true });
  });

  it("waits while it is paused, says so once, and counts no rounds for it", async () => {
    const { batch, items, both, run } = setup("");
    items(1, 2, 3);
    await run(["migrate"]);
    expect((await run(["queues", "pause", "--type", "batch:p", "--for", "2s", "--reason", "deploy"])).code).toBe(0);
    const { code, lines, document } = await both(batch("p"));
    expect(lines).toEqual(["waiting: the type batch:p is paused (deploy)", "first pass: 3 items in batches of 10"]);
    expect({ code, document }).toMatchObject({ code: 0, document: { succeeded: 3, retried: 0, rounds: 0 } });
  });

  it("counts what was in flight at a kill among what it goes on with", async () => {
    const { batch, items, begun, both, folder } = setup("test -e done || sleep 60");
    items(1, 2, 3, 4, 5, 6);
    const args = batch("killed", ["--batch-size", "3"]);
    const start = fileURLToPath(new URL("../../bin/redrive.js", import.meta.url));
    const child = spawn(process.execPath, [start, ...args], { cwd: folder, stdio: "ignore" });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    try {
      await begun();
    } finally {
      child.kill("SIGKILL");
    }
    await ended;
    writeFileSync(join(folder, "done"), "");
    const { code, lines } = await both(args);
    expect({ code, lines }).toEqual({
      code: 0,
      lines: [
        "resuming run 1 of killed",
        "first pass: 6 items in batches of 3",
        "waiting: 3 items run by a process that seems to have died; taken over within one lease",
      ],
    });
  });

  it("says that it waits for the items of another process that dies meanwhile", async () => {
    const { batch, items, begun, both, folder } = setup("while ! test -e done; do sleep 0.05; done");
    items(1, 2);
    const args = batch("bereft", ["--batch-size", "1"]);
    const start = fileURLToPath(new URL("../../bin/redrive.js", import.meta.url));
    const other = spawn(process.execPath, [start, ...args], { cwd: folder, stdio: "ignore" });
    const ended = new Promise((resolve) => other.once("exit", resolve));
    await begun();
    let send: (signal: "SIGINT") => void = () => undefined;
    const onWords = (text: string): void => {
      if (text.includes("seems to have died")) send("SIGINT");
    };
    const call = both(args, { onReady: (ready) => (send = ready), onWords });
    await begun(2);
    other.kill("SIGKILL");
    await ended;
    // As if on another machine, of whose processes nobody here knows.
    const silent = `update worker set host = 'another', beat_at = beat_at - 60000 where pid = ${other.pid}`;
    connect(join(folder, "redrive.db")).exec(silent);
    writeFileSync(join(folder, "done"), "");
    const { code, lines } = await call;
    expect(code).toBe(130);
    expect(lines.filter((line) => line.startsWith("waiting: "))).toEqual([
      "waiting: 1 item run by a process that seems to have died; taken over within one lease",
    ]);
  });

  it("goes on with dead items that were sent back, as a round of retries of their own", async () => {
    const { batch, items, both, run, folder } = setup("test -e fixed");
    items(1, 2, 3);
    const args = batch("again", ["--batch-size", "3", "--max-retries", "1"]);
    expect((await both(args)).document).toMatchObject({ failed: 3, retried: 3, rounds: 1 });
    writeFileSync(join(folder, "fixed"), "");
    expect((await run(["dlq", "retry", "--type", "batch:again"])).code).toBe(0);
    const { code, lines, document } = await both(batch("again", ["--batch-size", "3", "--max-retries", "5"]));
    expect({ code, lines }).toEqual({
      code: 0,
      lines: [
        "resuming run 1 of again",
        "max-retries stays 1, as the run began with; 5 is not used",
        "retry round 2: 3 items in batches of 1",
      ],
    });
    expect(document).toMatchObject({ succeeded: 3, failed: 0, retried: 3, rounds: 2, run: 1 });
  });

  it("whose state somebody deletes ends with what is left, and not as if all were well", async () => {
    const { batch, items, begun, both, folder } = setup(
      `case "$text" in *bad*) while ! test -e done; do sleep 0.05; done; exit 3;; esac`,
    );
    items(1, "bad");
    const call = both(batch("deleted", ["--batch-size", "2"]));
    await begun();
    connect(join(folder, "redrive.db")).exec("delete from cell where kind = 'batch'");
    writeFileSync(join(folder, "done"), "");
    const { code, lines, document } = await call;
    expect({ code, document }).toMatchObject({ code: 1, document: { succeeded: 0, failed: 0, left: 2 } });
    expect(lines.at(-1)).toBe("stopped with 2 items left; start the same command again to continue");
  });
});

describe("a signal", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("stops a run by %s: it says so, sums up, and says how to go on", async (signal, exit) => {
    const { batch, items, begun, both, folder } = setup("while ! test -e done; do sleep 0.05; done");
    items(1, 2, 3);
    let send: (signal: "SIGINT" | "SIGTERM") => void = () => undefined;
    const args = batch("stopped", ["--batch-size", "1"]);
    const call = both(args, { onReady: (ready) => (send = ready) });
    await begun();
    send(signal);
    writeFileSync(join(folder, "done"), "");
    const { code, lines, document } = await call;
    expect({ code, lines }).toEqual({
      code: exit,
      lines: [
        "first pass: 3 items in batches of 1",
        "stopping: running batches may finish within 25s; interrupt again to stop at once",
        "stopped with 2 items left; start the same command again to continue",
      ],
    });
    expect(document).toMatchObject({ items: 3, succeeded: 1, failed: 0, left: 2, rounds: 0, isResumed: false });
    expect(document.firstPassMs).toBeGreaterThan(0);
    expect(await both(args)).toMatchObject({ code: 0, document: { succeeded: 3, left: 0, isResumed: true } });
  });

  it("sent twice ends a run at once, and nothing is said about verdicts", async () => {
    const { batch, items, begun, run } = setup("sleep 60");
    items(1, 2, 3);
    let send: (signal: "SIGINT" | "SIGTERM") => void = () => undefined;
    const call = run(batch("hurried"), { onReady: (ready) => (send = ready), columns: 120 });
    await begun();
    send("SIGINT");
    send("SIGTERM");
    const { code, out, err } = await call;
    expect(code).toBe(130);
    expect(out).toMatch(/^3 items: 0 succeeded, 0 failed, 0 retried in 0 rounds/);
    expect(err).toContain("stopping at once\n");
    expect(err).toContain("stopped with 3 items left; start the same command again to continue\n");
    expect(err).not.toContain("verdict");
    expect(err).not.toContain("could not be written");
  });
});
