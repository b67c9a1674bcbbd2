// The reference pages leave nothing out: every option type, call, event and field of a context that a program can reach
// is on its page, and the places that the architecture page names are there.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as library from "../src/index.ts";

const root = new URL("..", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), "utf8");
const page = (name: string): string => read(`docs/reference/${name}.md`);
const headings = (text: string): string[] => [...text.matchAll(/^#{2,3} (.+)$/gm)].map(([, name = ""]) => name);
const without = (names: readonly string[], known: readonly string[]): string[] =>
  names.filter((name) => !known.includes(name));

/** The names that an entry point of the package exports, as its source says them. */
function exported(path: string): string[] {
  const source = read(path).replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, "");
  const lists = [...source.matchAll(/export (?:type )?\{([^}]*)\}/g)].map(([, list = ""]) => list);
  const declared = [...source.matchAll(/export (?:interface|type) (\w+)/g)].map(([, name = ""]) => name);
  return [...lists.flatMap((list) => list.match(/\w+(?=\s*(?:,|$))/g) ?? []), ...declared];
}

describe("options.md", () => {
  const entries = ["src/index.ts", "src/store/sqlite/index.ts", "src/store/postgres/index.ts", "src/testing/index.ts"];
  const types = entries.flatMap(exported).filter((name) => /(Options|Config|Filter|Query)$/.test(name));

  it("has a section for every type of options that the package exports", () => {
    expect(types.length).toBeGreaterThan(25);
    expect(without(types, headings(page("options")))).toEqual([]);
  });

  const LETTER_FIELDS: [path: string, list: string] = ["src/core/recovery/selection.ts", "LETTER_FIELDS"];
  /** A section, and the list of names that the program accepts there. */
  const accepted: [section: string, path: string, list: string, inherited?: [path: string, list: string]][] = [
    ["RedriveOptions", "src/redrive-options.ts", "FIELDS"],
    ["EnqueueOptions", "src/enqueue/new-jobs.ts", "FIELDS", ["src/core/policy.ts", "JOB_LIMIT_FIELDS"]],
    ["WorkerOptions", "src/worker/settings.ts", "WORKER_FIELDS"],
    ["JobFilter", "src/operate/jobs.ts", "FILTER"],
    ["DeadLetterFilter", "src/operate/dead-letters.ts", "FILTER", LETTER_FIELDS],
    ["RedriveSelection", "src/operate/redrive-selection.ts", "SELECTION", LETTER_FIELDS],
    ["ProcessRecordsOptions", "src/records/process-records.ts", "FIELDS"],
    ["AlertOptions", "src/core/alerts.ts", "ALERT_FIELDS"],
    ["AlertRuleOptions", "src/core/alerting/rules.ts", "FIELDS"],
    ["AlertSinksOptions", "src/alerts/sink-options.ts", "SINKS"],
    ["WebhookSinkOptions", "src/alerts/sink-options.ts", "WEBHOOK"],
    ["CommandSinkOptions", "src/alerts/sink-options.ts", "COMMAND"],
    ["BreakerOptions", "src/core/breaker.ts", "OPTION_KEYS"],
    ["SubprocessOptions", "src/jobs/subprocess.ts", "FIELDS"],
    ["PostgresOptions", "src/store/postgres/address.ts", "FIELDS"],
    ["PerformOptions", "src/testing/perform.ts", "FIELDS"],
  ];
  const namesIn = (path: string, list: string): string[] => {
    const declared = new RegExp(`^(?:export )?const ${list} = namesOf<\\w+>\\(\\)\\(\\[([^\\]]*)\\]`, "m");
    const [, names = ""] = declared.exec(read(path)) ?? [];
    return [...names.matchAll(/"(\w+)"/g)].map(([, option = ""]) => option);
  };

  it.each(accepted)("has under %s what %s accepts, and no more", (name, path, list, inherited) => {
    const [, section = ""] = page("options").split(`## ${name}\n`);
    const rows = [...(section.split("\n## ")[0] ?? "").matchAll(/^\| `(\w+)`/gm)].map(([, option = ""]) => option);
    const known = [...namesIn(path, list), ...(inherited ? namesIn(...inherited) : [])];
    expect(rows.toSorted()).toEqual(known.toSorted());
  });

  it("says of every option what it is", () => {
    const rows = page("options").match(/^\| `\w+`.*$/gm) ?? [];
    expect(rows.length).toBeGreaterThan(150);
    expect(rows.filter((row) => row.endsWith("|  |") || row.includes("`undefined`"))).toEqual([]);
  });

  it("says of every number and duration that can be left out what it is then", () => {
    const [, options = ""] = page("options").split("## RedriveOptions");
    const sections = options.split(/^## /m).filter((section) => /^\w*(Options|Config)\n|^\n/.test(section));
    const rows = sections.flatMap((section) => section.match(/^\| `\w+` \| `(?:number|Duration|boolean)` .*$/gm) ?? []);
    expect(rows.length).toBeGreaterThan(60);
    // Of a pair only one is given, and a change leaves as it is what it does not name.
    const chosen = /^\| `(maxRetries|every|delay|runAt|priority)` /;
    expect(rows.filter((row) => !/default/i.test(row) && !chosen.test(row))).toEqual([]);
  });
});

describe("api.md", () => {
  const known = headings(page("api"));

  it("has every call of a queue", async () => {
    const redrive = await library.createRedrive({ store: "memory:" });
    const calls = (at: string, face: object): string[] =>
      Object.entries(face).flatMap(([name, value]: [string, unknown]) => {
        if (typeof value === "function") return [`${at}.${name}`];
        return at === "redrive" && name !== "store" ? calls(`redrive.${name}`, value as object) : [];
      });
    const found = [...calls("redrive", redrive), ...calls("worker", redrive.worker())];
    await redrive.close();
    expect(found.length).toBeGreaterThan(45);
    expect(without(found, known)).toEqual([]);
  });

  it("has everything that the package exports to be called", () => {
    expect(without(Object.keys(library), known)).toEqual([]);
  });
});

describe("context.md", () => {
  it("has everything that a handler gets", async () => {
    let given: string[] = [];
    const job = library.defineJob("look", {
      run: (_input: object, context) => {
        for (let at: object = context; at !== Object.prototype; at = Object.getPrototypeOf(at) as object)
          given = [...given, ...Object.getOwnPropertyNames(at)];
      },
    });
    const redrive = await library.createRedrive({ store: "memory:", jobs: [job] });
    await redrive.enqueue(job, {});
    await redrive.worker().drain({ grace: 0 });
    await redrive.close();
    const [, section = ""] = page("context").split("## JobContext");
    const fields = [...(section.split("\n## ")[0] ?? "").matchAll(/^\| `(\w+)`/gm)].map(([, name = ""]) => name);
    expect(fields.toSorted()).toEqual([...new Set(given)].filter((name) => name !== "constructor").toSorted());
  });
});

describe("events.md", () => {
  it("has every kind of event that can be listened to, and no other", async () => {
    const redrive = await library.createRedrive({ store: "memory:" });
    let refusal = "";
    try {
      redrive.on("nonsense" as "*", () => undefined);
    } catch (error) {
      refusal = String(error);
    }
    await redrive.close();
    const kinds = refusal.match(/\b[a-z]+\.[a-z_]+\b/g) ?? [];
    expect(kinds).toHaveLength(14);
    const [, section = ""] = page("events").split("## Kinds");
    expect(headings(section.split("\n## Verdict")[0] ?? "").toSorted()).toEqual(kinds.toSorted());
  });
});

describe("architecture.md", () => {
  const [, after = ""] = read("docs/internals/architecture.md").split("## Where to look");
  const section = after.split("\n## ")[0] ?? "";
  const places = [...section.matchAll(/`([\w./-]+)#(\w+)`/g)].map(([, path = "", name = ""]) => [path, name] as const);

  it("answers each question with a place", () => {
    const rows = section.match(/^\| (?!---|question|to add).*$/gm) ?? [];
    expect(rows.length).toBeGreaterThan(14);
    expect(rows.filter((row) => !/`[\w./-]+#\w+`/.test(row))).toEqual([]);
    const asked = rows.map((row) => row.split(" | ")[0]?.slice(2));
    const fields = ["a job field", "a job field that is a limit"];
    const additions = ["a command", "a store verb", "verbs of a new subject", "a store", ...fields, "an option"];
    const stores = ["on Postgres", "on SQLite", "in memory"].map((where) => `Where is a stale write refused ${where}?`);
    expect(without(["Where is the backoff computed?", ...stores, ...additions], asked as string[])).toEqual([]);
  });

  /** The files of src that the rows of these names tell a reader to change. */
  const filesFor = (...names: readonly string[]): string[] => {
    const rows = names.map((name) => section.split("\n").find((row) => row.startsWith(`| ${name} | `)) ?? "");
    return [...new Set(rows.flatMap((row) => row.match(/src\/[\w./-]+/g) ?? []))];
  };

  it("has a limit of a job added in six files, and a verb in eight", () => {
    const limit = ["cli/command", "core/job", "core/policy", "core/verdict", "http/fields", "store/columns"];
    const named = filesFor("a job field that is a limit").toSorted();
    expect(named).toEqual(limit.map((path) => `src/${path}.ts`));
    expect(filesFor("a store verb").length).toBeGreaterThanOrEqual(5);
    expect(filesFor("a store verb").length).toBeLessThanOrEqual(8);
  });

  it("names every file that knows a limit, stuckLimit for one", () => {
    const known = readdirSync(new URL("src", root), { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".ts") && /stuckLimit|stuck_limit/.test(read(`src/${path}`)))
      .map((path) => `src/${path}`);
    // The columns of version 1 are in its schemas; what a single term means together with others is checked with new jobs.
    const first = ["src/store/sqlite/schema.ts", "src/store/postgres/schema.ts", "src/core/new-job.ts"];
    expect(without(known, [...filesFor("a job field", "a job field that is a limit"), ...first])).toEqual([]);
  });

  it.each(places)("names %s, which declares %s", (path, name) => {
    expect(existsSync(new URL(path, root))).toBe(true);
    const declares = new RegExp(`^(?:export )?(?:async )?(?:function|const|interface|type|class) ${name}\\b`, "m");
    expect(read(path)).toMatch(declares);
  });
});
