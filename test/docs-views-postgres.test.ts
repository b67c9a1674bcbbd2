// docs/stores/sql-views.md keeps its word on Postgres too: it names every column of every view, and every query that is
// not in the words of SQLite runs there, with odd values in some rows.
import { readFileSync } from "node:fs";
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { postgresWorld } from "./support/postgres-world.ts";
import { add, end, start, takeOne } from "./support/runs.ts";
import { dead, failure, retry } from "./support/verdicts.ts";

const page = readFileSync(new URL("../docs/stores/sql-views.md", import.meta.url), "utf8");
const SOME_ID = "01a1e135-5bf8-72a8-9d78-3aec9070e1bc";
const QUERIES = [...page.matchAll(/\n\n(.+):\n\n```(?:postgre)?sql\n([\s\S]*?);\n```/g)].map(
  ([, title, sql]) => [title as string, sql as string] as const,
);
/** In the words of SQLite; their Postgres form stands further below on the page. */
const isSqlite = (sql: string): boolean => /datetime\(|json_/.test(sql);

const SERVER = inject("postgres18");
const OLD = inject("postgres15");
const SERVERS = [["18", SERVER] as const, ...(OLD ? [["15", OLD] as const] : [])];

/** A schema after an incident: four dead thumbnails, two of them odd; an odd dead video; a record that waits after four tries. */
async function incident(server = SERVER) {
  const world = await postgresWorld(server, { now: Date.now() });
  const { store, clock, schema } = world;
  const die = async (type: string, minutesAgo: number, message: string, payload: string) => {
    clock.now = Date.now() - minutesAgo * 60_000;
    const first = await start(store, { type, payload });
    await end(store, first, retry({ failure: failure({ message }) }));
    await end(store, await takeOne(store, first.id), dead({ failure: failure({ message, fingerprint: type }) }));
    return first.id;
  };
  const old = await die("thumbnail", 120, "no such file", '{"key":"a.mp4"}');
  await die("thumbnail", 110, "no such file", '{"key":"a.mp4","note":"\\u0000 \\uD800"}');
  await die("thumbnail", 100, "no such file", '{"key":"b\\udfff.mp4"}');
  const odd = await die("video", 30, "caf\u00e9 \0 \ud800", '{"key":"\\u0000\\ud800"}');
  const recent = await die("thumbnail", 10, "no such file", '{"key":"a.mp4"}');
  const id = await add(store, { type: "record", key: "r1" });
  for (let tried = 1; tried <= 4; tried++)
    await end(store, await takeOne(store, id), retry({ delayMs: tried === 4 ? 60_000 : 0 }));
  const message = "Run stuck for 1.2h - retry 1/4 scheduled";
  await end(store, await start(store, { type: "scrape" }), retry({ delayMs: 60_000, failure: failure({ message }) }));
  await start(store, { type: "busy" });
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  await client.query(`set search_path to ${schema}`);
  onTestFinished(async () => {
    await client.end();
    await world.close();
  });
  const ask = async (text: string): Promise<unknown[][]> =>
    (await client.query<unknown[]>({ text: text.replaceAll("redrive.", `${schema}.`), rowMode: "array" })).rows;
  return { ask, schema, ids: { old, odd, recent } };
}

describe("the page about views, on Postgres", () => {
  it("names every view, and every column in its order", async () => {
    const { ask, schema } = await incident();
    const sections = [...page.matchAll(/^## `(\w+)`\n([\s\S]*?)(?=^## )/gm)];
    const views = await ask(`select table_name::text from information_schema.views where table_schema = '${schema}'`);
    expect(new Set(sections.map(([, view]) => view))).toEqual(new Set(views.flat()));
    for (const [, view, text] of sections) {
      const listed = [...(text ?? "").matchAll(/^\| `(\w+)` \|/gm)].map(([, column]) => column);
      const found = await ask(
        `select column_name::text from information_schema.columns where table_schema = '${schema}' and table_name = '${view}' order by ordinal_position`,
      );
      expect([view, found.flat()]).toEqual([view, listed]);
    }
  });

  it("has a Postgres form for every query in the words of SQLite", () => {
    const sqlite = QUERIES.filter(([, sql]) => isSqlite(sql)).map(([title]) => title.split(",")[0]);
    const postgres = QUERIES.filter(([title]) => title.endsWith(", on Postgres")).map(([title]) => title.split(",")[0]);
    expect(postgres).toEqual(sqlite);
  });

  it.each(QUERIES.filter(([, sql]) => !isSqlite(sql)))("%s: runs and finds something", async (_title, sql) => {
    const { ask, ids } = await incident();
    expect((await ask(sql.replaceAll(SOME_ID, ids.odd))).length).toBeGreaterThan(0);
  });

  it.each(SERVERS)(
    "finds the failures of the last hour, and looks into every input, on %s",
    async (_version, server) => {
      const { ask, ids } = await incident(server);
      const [hour, input] = QUERIES.filter(([title]) => title.endsWith(", on Postgres")).map(([, sql]) => sql);
      expect((await ask(hour as string)).map(([id]) => id)).toEqual([ids.recent, ids.odd]);
      expect(await ask(input as string)).toEqual([
        ["a.mp4", "3"],
        ["b\ufffd.mp4", "1"],
      ]);
    },
  );
});
