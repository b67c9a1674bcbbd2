// `dlq edit` and `dlq repair`: what they show, ask and write; and that bad input is one line, the right exit code, and
// writes nothing.
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { builtModule } from "../support/built.ts";
import { type Bench, createBench, RESTING_LOOP, type World } from "../support/cli.ts";
import { openBeside } from "../support/database-file.ts";

const JOBS = `
import { defineJob, PermanentError } from "redrive";
const input = { "~standard": { version: 1 as const, vendor: "test", validate(value: { cents?: unknown }) {
  return typeof value.cents === "number" ? { value } : { issues: [{ message: "expected a number", path: ["cents"] }] };
} } };
export const pay = defineJob("pay", { input, run() { throw new PermanentError("no currency"); } });
`;
const ODD = '{"cents":1,"id":9007199254740993,"s":"\\ud800","password":"hunter2"}';

let bench: Bench;
let id: string;

/** A dead payment with odd bytes and one without; lived through once, then copied. */
let template: { database: Buffer; ids: readonly [string, string] } | undefined;
let plain: string;

async function live(): Promise<NonNullable<typeof template>> {
  const ids: string[] = [];
  for (const payload of [ODD, '{"cents":2}']) {
    const { document } = await bench.json(["enqueue", "pay", payload]);
    ids.push(document.ids[0]);
  }
  await bench.run(["drain"]);
  return { database: readFileSync(join(bench.folder, "redrive.db")), ids: ids as [string, string] };
}

beforeEach(async () => {
  bench = createBench();
  bench.write("jobs.ts", JOBS);
  bench.write("redrive.config.yaml", "jobs: jobs.ts\n");
  template ??= await live();
  [id, plain] = template.ids;
  writeFileSync(join(bench.folder, "redrive.db"), template.database, { mode: 0o600 });
});

const payloadOf = (job = id): unknown => bench.sql(`select payload from job where id = '${job}'`)[0]?.[0];
function setPayload(payload: string): void {
  const db = openBeside(join(bench.folder, "redrive.db"));
  db.prepare("update job set payload = ? where id = ?").run(payload, id);
  db.close();
}
const versions = (): unknown => bench.sql("select count(*) from payload_version")[0]?.[0];

/** A call that must be refused with one line and must write nothing. */
async function refused(args: readonly string[], code: number, said: RegExp, world?: World): Promise<void> {
  const before = bench.sql("select id, state, payload from job order by seq");
  const { err, out, code: came } = await bench.run(args, world);
  expect(err).toMatch(said);
  expect(err.trimEnd().split("\n"), err).toHaveLength(1);
  expect(out).toBe("");
  expect(came).toBe(code);
  expect(bench.sql("select id, state, payload from job order by seq")).toEqual(before);
  expect(versions()).toBe(0);
}

describe("dlq edit", () => {
  it("writes a payload, shows the difference with secrets masked, and undoes it byte for byte", async () => {
    const edited = await bench.run(["dlq", "edit", id, "--patch", '{"cents":2}', "--why", "as asked"]);
    expect(edited.out).toBe(
      `  {\n-   "cents": 1,\n+   "cents": 2,\n    "id": 9007199254740993,\n    "s": "\\ud800",\n${id} has its new payload (version 1)\n`,
    );
    expect(edited.code).toBe(0);
    expect(payloadOf()).toBe(ODD.replace("1,", "2,"));
    const { document } = await bench.json(["dlq", "edit", id, "--versions"]);
    expect(document).toMatchObject({
      id,
      items: [
        { n: 0, actor: null, why: null },
        { n: 1, why: "as asked" },
      ],
    });
    const undone = await bench.json(["dlq", "edit", id, "--undo"]);
    expect(undone.document).toEqual({ id, version: 2, changed: true, recalled: false });
    expect(payloadOf()).toBe(ODD);
  });

  it("masks secrets in differences and versions unless they are to be revealed", async () => {
    const secret = ["dlq", "edit", id, "--patch", '{"password":"hunter3"}'];
    const hidden = await bench.run(secret);
    expect(hidden.out).not.toMatch(/hunter/);
    expect(hidden.out).toMatch(/only masked values or white space differ/);
    const shown = await bench.run(["dlq", "edit", id, "--undo", "--reveal"]);
    expect(shown.out).toMatch(/- {3}"password": "hunter3"\n\+ {3}"password": "hunter2"/);
    const listed = await bench.run(["dlq", "edit", id, "--versions"]);
    expect(listed.out).toMatch(/version 0 .* by its producer\n/);
    expect(listed.out).not.toMatch(/hunter/);
    expect((await bench.run(["dlq", "edit", id, "--versions", "--reveal"])).out).toMatch(/hunter2/);
    expect((await bench.run(["--redact", "dlq", "edit", id, "--versions", "--reveal"])).out).not.toMatch(/hunter/);
  });

  it("reads the payload from stdin, and writes nothing where it is the same", async () => {
    const world = { stdin: [' {"cents":', "3}\n"] };
    expect((await bench.json(["dlq", "edit", id, "--payload", "-"], world)).document).toMatchObject({ version: 1 });
    expect(payloadOf()).toBe('{"cents":3}');
    const same = await bench.json(["dlq", "edit", id, "--payload", '{"cents":3}']);
    expect(same.document).toEqual({ id, version: 1, changed: false, recalled: false });
  });

  it("asks on a terminal, and writes nothing unless the answer is yes", async () => {
    const args = ["dlq", "edit", id, "--payload", '{"cents":2}'];
    const no = await bench.run(args, { columns: 80, stdin: "n\n" });
    expect(no.err).toContain(`Write this payload of ${id}? [y/N]`);
    expect(no.out).toMatch(/Nothing was written\.\n$/);
    expect(versions()).toBe(0);
    await bench.run(args, { columns: 80, stdin: "y\n" });
    expect(payloadOf()).toBe('{"cents":2}');
    await bench.run(["dlq", "edit", id, "--undo", "--yes"], { columns: 80 });
    expect(payloadOf()).toBe(ODD);
  });

  it("opens an editor on a terminal, whose white space is not stored", async () => {
    const editor = bench.write("editor.sh", `#!/bin/sh\ncp "$2" seen.json\nsed -i 's/"cents": 1/"cents": 4/' "$2"\n`);
    chmodSync(editor, 0o755);
    const seen = `${bench.folder}/seen.json`;
    const env = { EDITOR: "false", VISUAL: `sh -c 'cd ${bench.folder} && ./editor.sh --wait "$0"'` };
    const { code } = await bench.run(["dlq", "edit", id, "--yes"], { columns: 80, env });
    expect(code).toBe(0);
    expect(readFileSync(seen, "utf8")).toMatch(/^{\n {2}"cents": 1,\n {2}"id": 9007199254740993,/);
    expect(payloadOf()).toBe(ODD.replace("1,", "4,"));
  });

  it.each([
    ["as it is", '{"cents":1}', ":"],
    ["with a new line at its end", '{"cents":1}', `printf '\\n' >> "$0"`],
    ["with white space that the editor shows", '{ "cents": 1 }', `printf ' \\n\\n' >> "$0"`],
    ["that does not fit its schema any more", '{"cents":"1"}', `printf '\\n' >> "$0"`],
  ])("leaves a payload unchanged that an editor gives back %s", async (_, payload, script) => {
    setPayload(payload);
    const env = { EDITOR: `sh -c '${script.replaceAll("'", `'"'"'`)}'` };
    const { code, out, err } = await bench.run(["dlq", "edit", id], { columns: 80, env });
    expect(out, err).toBe(`${id} is unchanged: it has this payload already; nothing was written.\n`);
    expect(code).toBe(0);
    expect(payloadOf()).toBe(payload);
    expect(versions()).toBe(0);
  });

  it("stores what an editor changes in a payload with white space, without the new line that it adds", async () => {
    setPayload('{ "cents": 1 }');
    const env = { EDITOR: `sh -c 'echo "{ \\"cents\\":  7 }" > "$0"'` };
    const { code, err } = await bench.run(["dlq", "edit", id, "--yes"], { columns: 80, env });
    expect(code, err).toBe(0);
    expect(payloadOf()).toBe('{ "cents":  7 }');
  });

  it("refuses what was edited while another operator sent the job back, and keeps the text", async () => {
    const folder = bench.folder;
    // The other operator is quicker than the editor.
    bench.write(
      "retry.mjs",
      `import { createRedrive } from ${JSON.stringify(builtModule("index.js"))};
      const redrive = await createRedrive({ store: "sqlite:${folder}/redrive.db", log: "silent", actor: "bob" });
      await redrive.deadLetters.retry(${JSON.stringify(id)}, { delay: "1h" });
      await redrive.close();`,
    );
    const env = { EDITOR: `sh -c 'echo "{\\"cents\\":7}" > "$0"; exec "${process.execPath}" "${folder}/retry.mjs"'` };
    const { code, err } = await bench.run(["dlq", "edit", id, "--yes"], { columns: 80, env });
    expect(err).toMatch(/is queued, and only a dead job can be edited \(bob sent it back to work at .*Z\); nothing/);
    expect(err).toMatch(/Your text is kept in \S+/);
    expect(code).toBe(4);
    expect(payloadOf()).toBe(ODD);
  });

  it("keeps the text of an editor that cannot be written", async () => {
    const env = { EDITOR: `sh -c 'echo nonsense > "$0"'` };
    const { code, err } = await bench.run(["dlq", "edit", id, "--yes"], { columns: 80, env });
    expect(code).toBe(2);
    expect(err).toMatch(/payload: expected JSON/);
    const kept = /Your text is kept in (\S+)/.exec(err)?.[1] ?? "";
    expect(existsSync(kept)).toBe(true);
    expect(readFileSync(kept, "utf8")).toBe("nonsense\n");
    expect(versions()).toBe(0);
    await refused(["dlq", "edit", id], 2, /The editor false did not write a payload: it ended with code 1/, {
      columns: 80,
      env: { EDITOR: "false" },
    });
  });

  it("refuses bad input in one line", async () => {
    const edit = ["dlq", "edit", id];
    await refused([...edit, "--payload", "{cents:1}"], 2, /payload: expected JSON/);
    await refused([...edit, "--payload", '{"cents":"1"}'], 2, /schema says cents: expected a number/);
    await refused([...edit, "--patch", "{"], 2, /patch: expected JSON/);
    await refused([...edit, "--payload", "-"], 2, /at most 1048576 bytes/, { stdin: `"${"x".repeat(2 ** 20)}"` });
    await refused([...edit, "--payload", "-"], 2, /JSON as UTF-8 text/, { stdin: [new Uint8Array([0xff])] });
    await refused([...edit, "--payload", "1", "--undo"], 2, /one of --payload, --patch, --undo, --versions/);
    await refused(edit, 2, /no terminal for an editor/);
    await refused([...edit, "--undo"], 4, /there is nothing to undo/);
    await refused([...edit, "--payload", '{"cents":2}', "--why", ""], 2, /why/);
    await refused(["dlq", "edit", "0199c8a2-7d1e-7a4b-9c3d-2f1e5a6b7c8d", "--payload", "{}"], 1, /There is no job/);
    await refused(["dlq", "edit", id.slice(0, 8), "--payload", "{}"], 1, /looks like the beginning of an id/);
    bench.write("redrive.config.yaml", "");
    await refused([...edit, "--payload", "{}"], 2, /No process here knows the type pay/);
  });

  it("refuses to edit a job that another operator has sent back, and recalls it to undo", async () => {
    await bench.run(["dlq", "edit", id, "--payload", '{"cents":2}']);
    await bench.run(["dlq", "retry", id], { env: { REDRIVE_ACTOR: "bob" } });
    const { code, err } = await bench.run(["dlq", "edit", id, "--payload", '{"cents":3}']);
    expect(err).toMatch(/is queued, and only a dead job can be edited \(bob sent it back to work at/);
    expect(code).toBe(4);
    const undone = await bench.json(["dlq", "edit", id, "--undo"]);
    expect(undone.document).toEqual({ id, version: 2, changed: true, recalled: true });
    expect(bench.sql("select state, generation, payload from job order by seq limit 1")).toEqual([["dead", 2, ODD]]);
  });
});

describe("dlq repair", () => {
  it("previews, repairs by a patch, and says what it did", async () => {
    const { document: causes } = await bench.json(["dlq", "causes"]);
    const cause = ["--cause", causes.items[0].fingerprint];
    const patch = ["--patch", '{"cur":"EUR"}'];
    const preview = await bench.json(["dlq", "repair", ...cause, ...patch, "--preview"]);
    expect(preview.code).toBe(0);
    expect(preview.document).toMatchObject({ letters: 2, fits: 2, unchanged: 0, misfits: { count: 0 }, repaired: 0 });
    expect(versions()).toBe(0);
    const done = await bench.run(["dlq", "repair", ...cause, ...patch, "--why", "lost in the import"]);
    expect(done.out).toBe("2 dead letters repaired\n");
    expect(payloadOf()).toBe(ODD.replace(/}$/, ',"cur":"EUR"}'));
    expect(payloadOf(plain)).toBe('{"cents":2,"cur":"EUR"}');
    expect((await bench.json(["dlq", "repair", ...cause, ...patch])).document).toMatchObject({ unchanged: 2, fits: 0 });
    const { document } = await bench.json(["events", "--kind", "job.edited", "--limit", "1"]);
    expect(document.items[0]).toMatchObject({ why: "lost in the import" });
  });

  it("repairs by a module, which may print without harming the answer", async () => {
    bench.write(
      "fix.ts",
      `type Paid = { cents: number };
       export default async (payload: Paid, letter: { job: { id: string } }) => {
         console.log("fixing", letter.job.id);
         return { ...payload, cents: payload.cents * 100 };
       };`,
    );
    const refusedAll = await bench.json(["dlq", "repair", "--type", "pay", "--with", "fix.ts"]);
    expect(refusedAll.code).toBe(4);
    expect(refusedAll.document).toMatchObject({
      fits: 1,
      losesNumbers: { count: 1, named: [{ id, issue: "a function would change the number 9007199254740993" }] },
      repaired: 0,
    });
    expect(versions()).toBe(0);
    const done = await bench.json(["dlq", "repair", "--type", "pay", "--with", "fix.ts", "--skip-misfits"]);
    expect(done.document).toMatchObject({ repaired: 1, skipped: 1, refused: 0 });
    expect(payloadOf(plain)).toBe('{"cents":200}');
    expect(payloadOf()).toBe(ODD);
  });

  it("names the letters that would not fit, and writes nothing", async () => {
    const all = ["dlq", "repair", "--all", "--patch", '{"cents":"x"}'];
    const { code, out, err } = await bench.run(all);
    expect(code).toBe(4);
    expect(out).toBe(
      `2 dead letters: 0 fit, 2 do not fit\n  ${id}  cents: expected a number\n  ${plain}  cents: expected a number\n`,
    );
    expect(err).toMatch(/^error: 2 of 2 dead letters would not fit; .*nothing was written\n$/);
    expect((await bench.run([...all, "--preview"])).code).toBe(4);
    expect(versions()).toBe(0);
  });

  it("asks on a terminal, and says where nothing matches", async () => {
    const args = ["dlq", "repair", "--all", "--patch", '{"cents":5}'];
    expect((await bench.run(args, { columns: 80, stdin: "\n" })).out).toBe("Nothing was written.\n");
    expect(versions()).toBe(0);
    const none = await bench.run(["dlq", "repair", "--type", "none", "--patch", "{}"]);
    expect(none.code).toBe(0);
    expect(none.out).toMatch(/nothing was written\.\n$/);
    const absent = await bench.json(["dlq", "repair", "no-job", "--patch", '{"cents":5}']);
    expect(absent).toMatchObject({ code: 1, document: { missing: 1, repaired: 0 } });
  });

  it("refuses bad recipes in one line", async () => {
    const repair = (...more: string[]): string[] => ["dlq", "repair", "--all", ...more];
    await refused(repair(), 2, /recipe: expected --patch or --with; got .*neither/);
    await refused(repair("--patch", "{}", "--with", "fix.ts"), 2, /got .*both/);
    await refused(["dlq", "repair", "--patch", "{}"], 2, /ids, filters or --all/);
    await refused(repair("--patch", "{"), 2, /patch: expected JSON/);
    await refused(repair("--with", "none.ts"), 2, /recipe: expected a module with a recipe; got .*does not exist/);
    const named = (...more: string[]): string[] => ["dlq", "repair", plain, ...more];
    const modules: [string, RegExp][] = [
      ["export default (", /recipe: expected a module whose default export is a function; got .*fix.ts/],
      ["export const fix = 1;", /it has no default export that is a function/],
      ["throw new Error('on\\nload');", /on load/],
      ["export default () => { throw new Error('no way'); };", /got an error: .*no way/],
      ["export default () => undefined;", /got undefined; return the payload/],
      ["export default () => process.exit(3);", /the end of its thread/],
    ];
    for (const [text, said] of modules) {
      bench.write("fix.mjs", text);
      await refused(named("--with", "fix.mjs"), 2, new RegExp(said.source.replace("fix.ts", "fix.mjs")));
    }
    bench.write("redrive.config.yaml", "");
    await refused(repair("--patch", "{}"), 2, /No process here knows the type pay/);
  });

  it("ends a function that loops, at once or after it has waited", async () => {
    for (const [n, head] of ["() => {", "async () => { await null;"].entries()) {
      bench.write(`loop${n}.mjs`, `export default ${head} ${RESTING_LOOP} };`);
      await refused(["dlq", "repair", plain, "--with", `loop${n}.mjs`], 2, /got no answer within 5 s; end its loop/);
    }
  });
});
