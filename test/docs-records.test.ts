// docs/guides/records.md keeps its word: its files, run by its commands against a real HTTP service, print what it prints.
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadConfig } from "../src/config/load-config.ts";
import { openDatabase } from "../src/store/sqlite/driver.ts";
import { type Bench, createBench } from "./support/cli.ts";

const page = readFileSync(new URL("../docs/guides/records.md", import.meta.url), "utf8");
const QUIET = { REDRIVE_LOG: "silent" };

/** The blocks of a language, in their order. */
function blocks(language: string): string[] {
  return [...page.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map(([, text]) => text ?? "");
}

/** What a drain printed, and what the page says, without the time it took. */
const withoutTime = (text: string): string => text.replace(/ in [\d.]+m?s\n$/, "\n");

describe("docs/guides/records.md", () => {
  const yaml = blocks("yaml").find((block) => block.includes("store:")) ?? "";
  const [jobs = "", , config = ""] = blocks("ts");
  const [records = "", result = ""] = blocks("json");
  const [, first = "", second = "", refused = ""] = blocks("text");
  const [call = ""] = blocks("sh");
  const answers = new Map([
    ["ada@example.com", 200],
    ["bob@example.com", 503],
    ["eve@example.com", 200],
  ]);
  let crm: Server;

  beforeAll(async () => {
    crm = createServer(({ url = "" }, response) => {
      const status = answers.get(url.replace("/people/", "")) ?? 404;
      response.writeHead(status, { "content-type": "application/json" }).end('{"company":"Analytical Engines"}');
    });
    await new Promise<void>((resolve) => crm.listen(0, "127.0.0.1", resolve));
    process.env.CRM_URL = `http://127.0.0.1:${(crm.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    delete process.env.CRM_URL;
    crm.closeAllConnections();
    crm.close();
  });

  function written(): Bench {
    const bench = createBench();
    bench.write("jobs.ts", jobs);
    bench.write("redrive.config.yaml", yaml);
    bench.write("customers.ndjson", records);
    return bench;
  }

  it("prints what its commands print, now and five minutes later", async () => {
    const bench = written();
    const args = call.trim().split(" ").slice(1);
    const now = await bench.run(args, { env: QUIET });
    expect([now.code, withoutTime(now.out), now.err]).toEqual([1, withoutTime(first), ""]);
    const lines = readFileSync(join(bench.folder, "enriched.ndjson"), "utf8").split("\n").toSorted();
    expect(lines).toEqual(["", result.trim(), result.trim().replace("c1", "c4")]);
    const again = await bench.run(args, { env: QUIET });
    expect([again.code, again.out.split("\n")[0]]).toEqual([0, "4 records: 0 new, 4 known"]);
    expect(again.out).toContain("1 in the retry queue");

    answers.set("bob@example.com", 200);
    const database = openDatabase(join(bench.folder, "records.db"));
    database.exec("update job set run_at = run_at - 300000 where state = 'queued'");
    database.close();
    const later = await bench.run(args, { env: QUIET });
    expect([later.code, withoutTime(later.out)]).toEqual([0, withoutTime(second)]);
    expect(readFileSync(join(bench.folder, "enriched.ndjson"), "utf8").trim().split("\n")).toHaveLength(3);
  });

  it("says in TypeScript what it says in YAML", async () => {
    const bench = written();
    const one = await loadConfig(join(bench.folder, "redrive.config.yaml"));
    const { file: _file, ...same } = await loadConfig(bench.write("redrive.config.ts", config));
    expect(one).toMatchObject(JSON.parse(JSON.stringify(same)));
    expect(same.defaults).toEqual(one.defaults);
  });

  it("shows how an unknown field is refused", async () => {
    const bench = written();
    bench.write("redrive.config.yaml", yaml.replace("maxRetries", "maxRetrys"));
    const { code, err } = await bench.run(["stats"]);
    expect([code, err.replace(`${bench.folder}/`, "")]).toEqual([78, refused]);
  });

  it("has the figures of a call in its table", async () => {
    const bench = written();
    const { document } = await bench.json(["drain", "--input", "customers.ndjson"], { env: QUIET });
    const rows = /\| field \| \|\n\| --- \| --- \|\n([\s\S]*?)\n\n/.exec(page)?.[1] ?? "";
    const fields = [...rows.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name);
    expect(fields.length).toBeGreaterThan(10);
    expect(Object.keys(document)).toEqual(expect.arrayContaining(fields));
  });
});
