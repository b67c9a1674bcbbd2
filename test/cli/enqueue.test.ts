// `enqueue`: one job, a file, a stream; what is refused leaves nothing behind.
import { existsSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { enqueueStream } from "../../src/cli/enqueue-stream.ts";
import type { Session } from "../../src/cli/session.ts";
import { knownType } from "../../src/enqueue/new-jobs.ts";
import { createBench, JOBS_TS } from "../support/cli.ts";

describe("enqueue", () => {
  it("stores the payload byte for byte and answers with the id", async () => {
    const bench = createBench();
    const payload = '{ "n": 12345678901234567890,  "s": "\\u0000" }';
    const { code, document } = await bench.json(["enqueue", "thing", payload]);
    expect(code).toBe(0);
    expect(document).toEqual({ ids: [expect.stringMatching(/^[0-9a-f-]{36}$/)], duplicates: 0, replaced: 0 });
    expect(bench.sql("select id, payload, max_attempts from jobs")).toEqual([[document.ids[0], payload, 10]]);
  });

  it("takes every option", async () => {
    const bench = createBench();
    const options = ["--key", "k", "--priority", "7", "--delay", "1h", "--tenant", "acme", "--max-attempts", "4"];
    const more = ["--deadline", "2h", "--service", "mail", "--queue", "slow", "--unique", "queued"];
    expect(await bench.run(["enqueue", "thing", "{}", ...options, ...more])).toMatchObject({ code: 0, err: "" });
    const { document } = await bench.json(["jobs", "list"]);
    expect(document.items).toMatchObject([
      { type: "thing", key: "k", priority: 7, tenant: "acme", maxAttempts: 4, deadlineMs: 7_200_000 },
    ]);
    expect(document.items[0]).toMatchObject({ service: "mail", queue: "slow", state: "queued", shown: "scheduled" });
  });

  it("takes global options before and after the command", async () => {
    const bench = createBench();
    await bench.run(["--store", "sqlite:a.db", "enqueue", "thing", "{}"]);
    await bench.run(["enqueue", "thing", "{}", "--store", "sqlite:a.db"]);
    const { document } = await bench.json(["--store=sqlite:a.db", "stats"]);
    expect(document.jobs.queued).toBe(2);
    expect(existsSync(join(bench.folder, "redrive.db"))).toBe(false);
  });

  it("reads a payload from a file", async () => {
    const bench = createBench();
    bench.write("payload.json", '{"from":"file"}\n');
    await bench.run(["enqueue", "thing", "@payload.json"]);
    expect(bench.sql("select payload from job")).toEqual([['{"from":"file"}']]);
  });

  it("refuses a file that is too large before it reads it, with the limit", async () => {
    const bench = createBench();
    const path = bench.write("big.json", "");
    // A file with a hole: it says that it is large and takes no room; reading it all would not fit into memory.
    truncateSync(path, 2 ** 40);
    const { code, err } = await bench.run(["enqueue", "thing", "@big.json"]);
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringContaining("big.json may have at most 1048576 bytes; got 1099511627776."),
    });
    const endless = await bench.run(["enqueue", "thing", "@/dev/zero"]);
    expect(endless).toMatchObject({ code: 2, err: expect.stringContaining("at most 1048576 bytes") });
    expect(existsSync(join(bench.folder, "redrive.db"))).toBe(false);
  });

  it("says that a key was known, and refuses another payload under it with exit 4", async () => {
    const bench = createBench();
    await bench.run(["enqueue", "thing", "{}", "--key", "a"]);
    const again = await bench.json(["enqueue", "thing", "{}", "--key", "a"]);
    expect(again).toMatchObject({ code: 0, document: { duplicates: 1 } });
    const other = await bench.run(["enqueue", "thing", "[]", "--key", "a"]);
    expect(other).toMatchObject({ code: 4, out: "" });
    expect(other.err).toContain(again.document.ids[0]);
  });

  it("checks the input against the schema of --jobs, and refuses a type that is not in it", async () => {
    const bench = createBench();
    bench.write("jobs.ts", JOBS_TS);
    const bad = await bench.run(["enqueue", "picky", '{"n":2}', "--jobs", "jobs.ts"]);
    expect(bad).toMatchObject({ code: 2, err: expect.stringContaining("n must be 1") });
    const unknown = await bench.run(["enqueue", "pikcy", '{"n":1}', "--jobs", "jobs.ts"]);
    expect(unknown).toMatchObject({ code: 2, err: expect.stringContaining("broken, flaky, hello") });
    expect(existsSync(join(bench.folder, "redrive.db"))).toBe(false);
    expect(await bench.run(["enqueue", "picky", '{"n":1}', "--jobs", "jobs.ts"])).toMatchObject({ code: 0 });
  });

  it.each([
    [["enqueue"], "missing required argument 'type'"],
    [["enqueue", "thing"], 'expected JSON, @file or -; got nothing; pass JSON such as \'{"name":"Ada"}\''],
    [["enqueue", "thing", "{oops"], "JSON"],
    [["enqueue", "no good", "{}"], "type: expected"],
    [["enqueue", "thing", "{}", "--priority", "10"], "priority: expected a whole number from 0 to 9; got 10"],
    [["enqueue", "thing", "{}", "--priority", "high"], 'got "high"'],
    [["enqueue", "thing", "{}", "--delay", "5"], 'add a unit, e.g. "5s"'],
    [["enqueue", "thing", "{}", "--run-at", "tomorrow"], "ISO 8601"],
    [["enqueue", "thing", "{}", "--unique", "queued"], "set a key too"],
    [["enqueue", "thing", "@none.json"], "none.json"],
    [["enqueue", "thing", "@none.json", "--unique", "foo"], "unique: expected one of key, queued, active"],
    [["enqueue", "thing", "-", "--unique", "debouce"], 'did you mean "debounce"?; nothing was written'],
    [["enqueue", "thing", "-", "--key", "a"], "--key-field"],
    [["enqueue", "thing", "{}", "extra"], "too many arguments"],
    [["enqueue", "thing", "{}", "--prioriti", "1"], "Did you mean --priority?"],
    [["enqueu", "thing", "{}"], "Did you mean enqueue?"],
  ])("refuses %j with exit 2 and stores nothing", async (args, message) => {
    const bench = createBench();
    const { code, out, err } = await bench.run(args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(message);
    expect(err).not.toMatch(/\n\s+at /);
    expect(existsSync(join(bench.folder, "redrive.db"))).toBe(false);
  });
});

describe("enqueue -", () => {
  it("reads one payload a line, skips blank ones, and answers with every id", async () => {
    const bench = createBench();
    const stdin = ['{"n":1}\n\n{"n"', ":2}\r\n   \n", '{"n":3}'];
    const { document } = await bench.json(["enqueue", "thing", "-"], { stdin });
    expect(document).toMatchObject({ enqueued: 3, duplicates: 0, conflicts: 0 });
    expect(bench.sql("select id, payload from job order by seq")).toEqual([
      [document.ids[0], '{"n":1}'],
      [document.ids[1], '{"n":2}'],
      [document.ids[2], '{"n":3}'],
    ]);
  });

  it("names the bad line, and what came before it stays", async () => {
    const bench = createBench();
    const stdin = `${'{"n":1}\n'.repeat(700)}\n{oops\n{"n":2}\n`;
    const { code, err } = await bench.run(["enqueue", "thing", "-"], { stdin });
    expect(code).toBe(2);
    expect(err).toMatch(/line 702: .*\(700 before it were enqueued\)/);
    expect(bench.sql("select count(*) from job")).toEqual([[700]]);
  });

  it("gives one document also when a line is bad", async () => {
    const bench = createBench();
    const { code, document } = await bench.json(["enqueue", "thing", "-"], { stdin: "1\n2\n{" });
    expect(code).toBe(2);
    expect(document).toMatchObject({ ids: [expect.any(String), expect.any(String)], enqueued: 2 });
    expect(document.error.message).toContain("line 3");
  });

  it("takes the key from a field, so that the same file can be fed again", async () => {
    const bench = createBench();
    const stdin = '{"id":1,"v":1}\n{"id":"two"}\n';
    await bench.run(["enqueue", "thing", "-", "--key-field", "id"], { stdin });
    const again = await bench.run(["enqueue", "thing", "-", "--key-field", "id"], { stdin: `${stdin}{"id":3}\n` });
    expect(again).toMatchObject({ code: 0, out: "1 job enqueued, 2 duplicates\n" });
    const other = await bench.run(["enqueue", "thing", "-", "--key-field", "id"], {
      stdin: '{"id":1,"v":2}\n{"id":4}',
    });
    expect(other).toMatchObject({ code: 4, out: "1 job enqueued, 1 conflict\n" });
    const missing = await bench.run(["enqueue", "thing", "-", "--key-field", "id"], { stdin: '{"x":1}' });
    expect(missing).toMatchObject({ code: 2, err: expect.stringContaining('"id"') });
  });

  it("refuses bytes that are not UTF-8", async () => {
    const bench = createBench();
    const { code, err } = await bench.run(["enqueue", "thing", "-"], { stdin: [new Uint8Array([0x22, 0xff, 0x22])] });
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining("line 1: expected UTF-8") });
  });

  it("makes no file for an empty stream, and warns that nothing came", async () => {
    const bench = createBench();
    const { code, out, err } = await bench.run(["enqueue", "thing", "-"], { stdin: "\n" });
    expect({ code, out }).toEqual({ code: 0, out: "0 jobs enqueued\n" });
    expect(err).toContain("stdin was empty");
    expect(await bench.json(["enqueue", "thing", "-"])).toMatchObject({ code: 0, document: { ids: [], enqueued: 0 } });
    expect(existsSync(join(bench.folder, "redrive.db"))).toBe(false);
  });
});

describe("a second signal", () => {
  it("ends a stream whose store does not answer, in one document, and says what is not known", async () => {
    const said: string[] = [];
    const seen = { out: "", isAsked: false, isAbandoned: false };
    let send: (signal: "SIGINT" | "SIGTERM") => void = () => undefined;
    const session = {
      json: true,
      quiet: true,
      io: {
        stdout: { write: (text: string) => (seen.out += text) !== "" },
        stdin: (async function* () {
          yield '{"n":1}\n{"n":2}\n{"n":';
          await new Promise(() => undefined);
        })(),
        onSignal(listener: typeof send) {
          send = listener;
          return () => undefined;
        },
      },
      say: (line: string) => void said.push(line),
      abandon: () => void (seen.isAbandoned = true),
      open: async () => ({
        enqueueText() {
          seen.isAsked = true;
          return new Promise(() => undefined);
        },
      }),
    } as unknown as Session;
    const known = knownType("mail", {});
    const options = { known, definition: null, jobs: [], defaults: {}, fields: {}, keyField: undefined };
    const ended = enqueueStream(session, options);
    await vi.waitFor(() => expect(seen.isAsked).toBe(true), 10_000);
    send("SIGINT");
    send("SIGTERM");
    expect(await ended).toBe(130);
    expect(JSON.parse(seen.out)).toMatchObject({ ids: [], enqueued: 0, interrupted: true });
    expect(seen.isAbandoned).toBe(true);
    expect(said[0]).toMatch(/^the store has not answered for [12] lines?: they may or may not be stored$/);
  });
});
