// `redrive monitoring print`: the Grafana board and the alert rules that come with the package.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Argument } from "commander";
import { put } from "../system/output.ts";
import { type Cli, examples } from "./command.ts";

const FILES: Readonly<Record<string, string>> = { grafana: "grafana.json", alerts: "alerts.yml" };

/** Registers `monitoring`. */
export function register(cli: Cli): void {
  const print = cli.command
    .command("print")
    .summary("print the Grafana board or the alert rules for Prometheus")
    .description("print the Grafana board or the alert rules for Prometheus")
    .addArgument(new Argument("<what>", "what to print").choices(Object.keys(FILES)));
  examples(print, cli, ["monitoring print grafana > board.json", "monitoring print alerts > alerts.yml"]);
  cli.actBare(print, async ([what = "grafana"]) => {
    put(cli.io.stdout, "data", readFileSync(shippedFile(FILES[what] ?? ""), "utf8"));
    return 0;
  });
}

/** The file in the nearest folder `monitoring` above this module: that of the package. */
function shippedFile(name: string): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const file = join(folder, "monitoring", name);
    if (existsSync(file) || folder === dirname(folder)) return file;
  }
}
