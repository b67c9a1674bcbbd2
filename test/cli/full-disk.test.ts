// Disks that take only a part: a file is whole or not there, what was stored is counted, and nothing follows a link that
// lies in the way. The limit on the size of a file gives short writes to everybody, with and without special rights.
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { builtModule } from "../support/built.ts";
import { type Bench, createBench, JOBS_TS } from "../support/cli.ts";

const SCRIPT = fileURLToPath(new URL("../support/cli-process.mjs", import.meta.url));
const BUILT = builtModule("cli/process.js").slice(0, -"cli/process.js".length);

/** Runs a call in which no file may grow beyond so many bytes; 512 bytes are one of the shell's blocks. */
function limited({ folder }: Bench, bytes: number, args: readonly string[], input = "") {
  const limit = `ulimit -f ${bytes / 512} && exec "$0" "$@"`;
  const { status, stdout, stderr } = spawnSync("sh", ["-c", limit, process.execPath, SCRIPT, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, REDRIVE_BUILT: BUILT },
    input,
    encoding: "utf8",
    timeout: 60_000,
  });
  return { code: status, out: stdout, err: stderr };
}

const PAYLOAD = JSON.stringify({ text: "x".repeat(50_000) });

async function withDead(letters: number): Promise<Bench> {
  const bench = createBench();
  bench.write("jobs.ts", JOBS_TS);
  await bench.run(["enqueue", "broken", "-"], { stdin: `${PAYLOAD}\n`.repeat(letters) });
  await bench.run(["drain", "--jobs", "jobs.ts"]);
  return bench;
}

describe.skipIf(process.platform === "win32")("an export to a file", () => {
  // Twelve lines of about 50,900 bytes: the last of them is written in part, or one in the middle.
  it.each([589_824, 262_144])(
    "that ends at %i bytes, because the disk is full, ends with 3 and leaves no file",
    async (room) => {
      const bench = await withDead(12);
      const before = readdirSync(bench.folder);
      const { code, err, out } = limited(bench, room, ["dlq", "export", "--output", "dead.ndjson"]);
      expect({ code, err, out }).toEqual({
        code: 3,
        out: "",
        err: expect.stringMatching(
          /^error: output: expected to write .*dead\.ndjson to its end; got EFBIG.*; make room.*\n$/,
        ),
      });
      expect(readdirSync(bench.folder).filter((name) => !before.includes(name) && name.includes("dead"))).toEqual([]);
      expect((await bench.run(["dlq", "export", "--output", "dead.ndjson"])).code).toBe(0);
      const lines = readFileSync(join(bench.folder, "dead.ndjson"), "utf8").trimEnd().split("\n");
      expect(lines.map((line) => JSON.parse(line).payload.text.length)).toEqual(Array(12).fill(50_000));
      expect(statSync(join(bench.folder, "dead.ndjson")).mode & 0o777).toBe(0o600);
    },
    120_000,
  );

  it("follows no link, and takes the place of none", async () => {
    const bench = await withDead(1);
    const victim = bench.write("victim", "mine");
    symlinkSync(victim, join(bench.folder, "dead.ndjson.part"));
    expect(await bench.run(["dlq", "export", "--output", "dead.ndjson"])).toMatchObject({ code: 0 });
    expect(lstatSync(join(bench.folder, "dead.ndjson")).isFile()).toBe(true);
    symlinkSync(join(bench.folder, "nowhere"), join(bench.folder, "link.ndjson"));
    expect(await bench.run(["dlq", "export", "--output", "link.ndjson"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("expected a new file"),
    });
    expect([existsSync(join(bench.folder, "nowhere")), readFileSync(victim, "utf8")]).toEqual([false, "mine"]);
  });

  it("whose name is too long is refused", async () => {
    const bench = await withDead(1);
    for (const args of [
      ["dlq", "export", "--output", "x".repeat(5_000)],
      ["dlq", "export", "--output", "x".repeat(252)],
    ])
      expect(await bench.run(args)).toMatchObject({ code: 2, err: expect.stringContaining("ENAMETOOLONG") });
    expect((await bench.run(["stats", "--config", "x".repeat(5_000)])).code).toBe(78);
  });

  it("leaves a file alone that is there, and says so", async () => {
    const bench = await withDead(1);
    writeFileSync(join(bench.folder, "dead.ndjson"), "mine");
    expect(await bench.run(["dlq", "export", "--output", "dead.ndjson"])).toMatchObject({
      code: 2,
      err: expect.stringMatching(/expected a new file; got .*dead\.ndjson/),
    });
    expect(readFileSync(join(bench.folder, "dead.ndjson"), "utf8")).toBe("mine");
  });
});

describe.skipIf(process.platform === "win32")("enqueue -", () => {
  it("on a disk that is full counts every job that is stored, and names the lines that are not", async () => {
    const bench = createBench();
    await bench.run(["migrate"]);
    const line = (number: number): string => `${JSON.stringify({ number, text: "x".repeat(500) })}\n`;
    const input = Array.from({ length: 20_000 }, (_, at) => line(at + 1)).join("");
    const { code, err, out } = limited(bench, 2_097_152, ["enqueue", "thing", "-", "--json"], input);
    const stored = bench.sql("select count(*) from jobs")[0]?.[0] as number;
    expect(stored).toBeGreaterThan(0);
    expect(stored).toBeLessThan(20_000);
    const document = JSON.parse(out);
    expect({ code, stored: document.enqueued, ids: document.ids.length }).toEqual({ code: 3, stored, ids: stored });
    expect(err).toMatch(/^error: lines? \d+(-\d+)?(, \d+(-\d+)?)*( and \d+ more)?: .*\n$/);
    expect(err).toContain(`(${stored} were enqueued`);
    expect(document.error.message).toContain(`(${stored} were enqueued`);
    // Lines of another write may be stored though they come behind those that are lost.
    const [last] = bench.sql("select max(json_extract(payload, '$.number')) from jobs")[0] as [number];
    const read = Number(/and no line after line (\d+) was read\)/.exec(err)?.[1]);
    expect(read).toBeGreaterThanOrEqual(last);
    expect(read).toBeGreaterThan(stored);
  }, 120_000);
});
