// docs/stores/sql-views.md keeps its word: it names every column of every view, and its queries give what they say on a
// real file, in which some rows hold odd values and one is damaged.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Ask, connect, inlineStore, reader } from "./support/database-file.ts";
import { add, end, start, takeOne } from "./support/runs.ts";
import { complete, dead, failure, retry } from "./support/verdicts.ts";

const page = readFileSync(new URL("../docs/stores/sql-views.md", import.meta.url), "utf8");
const SOME_ID = "01a1e135-5bf8-72a8-9d78-3aec9070e1bc";
const MINUTE = 60_000;
const ODD = "caf\u00e9 \0 \ud800 ' \" | \u{1f600}";
const SHOWN = "caf\u00e9 ␀ \ufffd ' \" | \u{1f600}";

/** The query below this line of text, about this job. */
function query(title: string, id = SOME_ID): string {
  const [, sql] = page.split(`\n\n${title}:\n\n\`\`\`sql\n`)[1]?.match(/^([\s\S]*?);\n```/) ?? [];
  if (sql === undefined) throw new Error(`sql-views.md has no query under "${title}:".`);
  return sql.replaceAll(SOME_ID, id);
}

/** A file after an incident: three dead, one of them with odd texts; two waiting for a retry, one done, one damaged. */
async function incident() {
  const { path, store, clock } = await inlineStore();
  const now = clock.now;
  const die = async (type: string, minutesAgo: number, message: string, payload: string) => {
    clock.now = now - minutesAgo * MINUTE;
    const first = await start(store, { type, maxAttempts: 2, payload });
    await end(store, first, retry({ failure: failure({ message }) }));
    const stack = `Error: ${message}\n    at run (${type}.ts:7:11)`;
    const last = failure({ message, stack, fingerprint: type });
    await end(store, await takeOne(store, first.id), dead({ failure: last }));
    return first.id;
  };
  const wait = async (key: string, tries: number) => {
    const id = await add(store, { type: `record-${key}`, key });
    for (let tried = 1; tried <= tries; tried++) {
      const delayMs = tried === tries ? 60 * MINUTE : 0;
      await end(store, await takeOne(store, id), retry({ delayMs, failure: failure({ message: `no ${tried}` }) }));
    }
  };
  const old = await die("thumbnail", 120, "no such file", '{"key":"a.mp4"}');
  const odd = await die("video", 30, ODD, '{"key":"\\u0000\\ud800","n":12345678901234567890}');
  const recent = await die("thumbnail", 10, "no such file", '{"key":"a.mp4"}');
  clock.now = now;
  await wait("r1", 4);
  await wait("r2", 1);
  const mail = await start(store, { type: "mail" });
  await end(store, mail, retry());
  await end(store, await takeOne(store, mail.id), complete());
  const damaged = await add(store, { type: "broken" });
  const db = connect(path);
  db.exec("pragma ignore_check_constraints = on");
  const damage =
    "payload = '{\"cut', failure = '{', lane = 4711, attempts = -1, updated_at = -9223372036854775808, state = 'lost'";
  expect(db.prepare(`update job set ${damage} where id = ?`).run(damaged)).toBe(1);
  // The payload of the oldest dead job is no JSON any more; its letter stays readable.
  db.prepare("update job set payload = char(0) || '{' where id = ?").run(old);
  return { ask: reader(path), ids: { old, odd, recent, mail: mail.id, damaged } };
}

const viewNames = (ask: Ask): unknown[] => ask("select name from sqlite_master where type = 'view'").flat();

describe("the page about views", () => {
  it("names every view, and every column in its order", async () => {
    const { path } = await inlineStore();
    const ask = reader(path);
    const sections = [...page.matchAll(/^## `(\w+)`\n([\s\S]*?)(?=^## )/gm)];
    expect(new Set(sections.map(([, view]) => view))).toEqual(new Set(viewNames(ask)));
    for (const [, view, text] of sections) {
      const listed = [...(text ?? "").matchAll(/^\| `(\w+)` \|/gm)].map(([, column]) => column);
      expect([view, listed]).toEqual([view, ask(`select name from pragma_table_info('${view}')`).flat()]);
    }
  });

  it("counts attempts per job, those of a damaged row too", async () => {
    const { ask, ids } = await incident();
    const rows = ask(query("Attempts per job"));
    expect(rows).toContainEqual([ids.odd, "video", "failed", 2, 2]);
    expect(rows).toContainEqual([ids.mail, "mail", "completed", 1, 10]);
    expect(rows).toContainEqual([ids.damaged, null, "lost", -1, 10]);
    expect(rows).toHaveLength(7);
  });

  it("finds retries by due time, the history of one, what runs and what hung", async () => {
    const { path, store, clock } = await inlineStore();
    const ask = reader(path);
    const message = "Run stuck for 1.2h - retry 1/4 scheduled";
    const hung = await start(store, { type: "scrape", maxAttempts: 5 });
    clock.now += 72 * MINUTE;
    await end(store, hung, retry({ delayMs: 240 * MINUTE, failure: failure({ message }) }));
    const soon = await start(store, { type: "scrape", maxAttempts: 5 });
    await end(store, soon, retry({ delayMs: MINUTE }));
    const runs = await start(store, { type: "scrape" });
    expect(ask(query("Retries that wait, by the time they are due")).map((row) => row.slice(0, 2))).toEqual([
      [soon.id, "[RETRY 1/4]"],
      [hung.id, "[RETRY 1/4]"],
    ]);
    expect(ask(query("The history of a run with all its retries", hung.id)).map((row) => row.slice(0, 3))).toEqual([
      [hung.id, null, "failed"],
      [`${hung.id}:1.2`, "[RETRY 1/4]", "pending_retry"],
    ]);
    expect(ask(query("What runs now, the longest first")).map(([id]) => id)).toEqual([runs.id]);
    const given = ask(query("Stuck runs that Redrive ended"));
    expect(given).toEqual([[hung.id, null, expect.any(String), message]]);
  });

  it("shows every run of one job", async () => {
    const { ask, ids } = await incident();
    const rows = ask(query("Every run of one job", ids.mail));
    expect(rows.map(([attempt, status, , , found, message]) => [attempt, status, found, message])).toEqual([
      [1, "failed", "transient", "connection reset"],
      [2, "completed", null, null],
    ]);
  });

  it("lists dead letters newest first", async () => {
    const { ask, ids } = await incident();
    const rows = ask(query("Dead letters, newest first"));
    expect(rows.map((row) => row.slice(0, 4))).toEqual([
      [ids.recent, "thumbnail", 2, "no such file"],
      [ids.odd, "video", 2, SHOWN],
      [ids.old, "thumbnail", 2, "no such file"],
    ]);
  });

  it("shows the stack trace and the input of one", async () => {
    const { ask, ids } = await incident();
    expect(ask(query("The stack trace and the input of one", ids.odd))).toEqual([
      [`Error: ${SHOWN}\n    at run (video.ts:7:11)`, '{"key":"\\u0000\\ud800","n":12345678901234567890}'],
    ]);
  });

  it("counts by type, by error and by cause", async () => {
    const { ask } = await incident();
    const counts = (first: string, second: string) => [
      [first, 2],
      [second, 1],
    ];
    expect(ask(query("Dead letters by type"))).toEqual(counts("thumbnail", "video"));
    expect(ask(query("Dead letters by error"))).toEqual(counts("no such file", SHOWN));
    expect(ask(query("Dead letters by cause, where messages differ in a name or a number"))).toEqual([
      ["thumbnail", 2, "no such file"],
      ["video", 1, SHOWN],
    ]);
  });

  it("finds the failures of the last hour", async () => {
    const { ask, ids } = await incident();
    expect(ask(query("Failures of the last hour")).map(([id]) => id)).toEqual([ids.recent, ids.odd]);
  });

  it("finds records with three retries or more", async () => {
    const { ask } = await incident();
    const rows = ask(query("Records with three retries or more"));
    expect(rows.map((row) => row.slice(0, 3))).toEqual([["r1", 4, "no 4"]]);
  });

  it("looks into inputs and passes over what is no JSON", async () => {
    const { ask } = await incident();
    const rows = ask(query("A field of the input, of rows that are valid JSON"));
    expect(rows).toHaveLength(2);
    expect(rows).toContainEqual(["a.mp4", 1]);
  });

  it("counts jobs by status", async () => {
    const { ask } = await incident();
    expect(ask(query("Jobs by status"))).toEqual([
      ["completed", 1],
      ["failed", 3],
      ["lost", 1],
      ["retrying", 2],
    ]);
  });

  it("has no query that is not tried here", () => {
    const used = readFileSync(new URL(import.meta.url), "utf8");
    // Those in the words of Postgres are marked so, and tried in docs-views-postgres.test.ts.
    const titles = [...page.matchAll(/\n\n(.+):\n\n```sql\n/g)].map(([, title]) => title);
    expect(titles.filter((title) => !used.includes(`query("${title}"`))).toEqual([]);
    expect(titles).toHaveLength(page.split("```sql").length - 1);
  });
});
