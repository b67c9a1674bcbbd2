// The Grafana board and the alert rules: every panel says what it shows, every name is one that Redrive exports, every
// expression is PromQL, and each rule fires and is resolved at its minute.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { createBench } from "./support/cli.ts";
import { testFolder } from "./support/database-file.ts";
import { promtool } from "./support/promtool.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), "utf8");
interface Panel {
  readonly title: string;
  readonly description: string;
  readonly fieldConfig: { readonly defaults: { readonly unit: string } };
  readonly targets: readonly { readonly expr: string }[];
}
const panels = (JSON.parse(read("monitoring", "grafana.json")) as { panels: Panel[] }).panels;
const rules = parse(read("monitoring", "alerts.yml")).groups[0].rules as { alert: string; expr: string }[];
const expressions = [...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)), ...rules.map((r) => r.expr)];
const exported = new Set(read("docs", "guides", "monitoring.md").match(/redrive_[a-z_]+/g));

const unknownNames = (expr: string): string[] =>
  (expr.match(/redrive_[a-z_]+/g) ?? []).filter((name) => !exported.has(name.replace(/_(bucket|sum|count)$/, "")));

/** True where promtool takes the expressions as rules. */
function arePromql(all: readonly string[]): boolean {
  const file = join(testFolder(), "rules.json");
  const asRules = all.map((expr, at) => ({ record: `r${at}`, expr: expr.replaceAll("$__rate_interval", "5m") }));
  writeFileSync(file, JSON.stringify({ groups: [{ name: "all", rules: asRules }] }));
  return spawnSync("promtool", ["check", "rules", file]).status === 0;
}

describe("monitoring", () => {
  it("every panel has a unit and a description, and every name is exported", () => {
    expect(panels.length).toBeGreaterThan(0);
    for (const { title, description, fieldConfig } of panels)
      expect([title, description !== "", fieldConfig.defaults.unit !== ""]).toEqual([title, true, true]);
    expect(expressions.flatMap(unknownNames)).toEqual([]);
    expect(unknownNames("sum(redrive_runz_total)")).toEqual(["redrive_runz_total"]);
  });

  it.skipIf(promtool === null)("every expression is PromQL, and each rule fires and is resolved at its minute", () => {
    expect(arePromql(expressions)).toBe(true);
    expect(arePromql([...expressions, "sum(rate(redrive_runs_total[5m])"])).toBe(false);
    const { status, stderr } = spawnSync("promtool", ["test", "rules", join(ROOT, "monitoring", "alerts.test.yml")]);
    expect([status, String(stderr)]).toEqual([0, ""]);
    for (const { alert } of rules) expect(read("monitoring", "alerts.test.yml")).toContain(`name: ${alert}\n`);
  });

  it("the command line prints both, and refuses another name", async () => {
    const bench = createBench();
    for (const [what, file] of [
      ["grafana", "grafana.json"],
      ["alerts", "alerts.yml"],
    ] as const)
      expect(await bench.run(["monitoring", "print", what])).toMatchObject({ code: 0, out: read("monitoring", file) });
    expect(await bench.run(["monitoring", "print", "zabbix"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("grafana, alerts"),
    });
  });
});
