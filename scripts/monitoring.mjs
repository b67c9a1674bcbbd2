// Writes monitoring/grafana.json, the Grafana board, from the list of panels below. Run it after a change of that list:
//   node scripts/monitoring.mjs
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const FILE = join(fileURLToPath(new URL("..", import.meta.url)), "monitoring", "grafana.json");
const quantile = (metric) => `histogram_quantile(0.95, sum by (le, type) (rate(${metric}_bucket[$__rate_interval])))`;

/** Title, unit, description, expression and legend of each panel, in the order of the board. */
const PANELS = [
  [
    "Health",
    "percentunit",
    "Score of `redrive health`: 1 is healthy, below 0.5 unhealthy.",
    "min(redrive_health_score)",
    "score",
  ],
  [
    "Workers",
    "short",
    "Workers by state; lost ones sent no heartbeat for a lease.",
    "max by (state) (redrive_workers)",
    "{{state}}",
  ],
  [
    "Jobs",
    "short",
    "Jobs in the store by state, counted up to 10,000 of each.",
    "max by (state) (redrive_jobs)",
    "{{state}}",
  ],
  [
    "Runs",
    "ops",
    "Runs that ended per second, by outcome.",
    "sum by (outcome) (rate(redrive_runs_total[$__rate_interval]))",
    "{{outcome}}",
  ],
  [
    "Failures",
    "ops",
    "Failed runs per second, by failure class.",
    "sum by (class) (rate(redrive_failures_total[$__rate_interval]))",
    "{{class}}",
  ],
  [
    "Enqueued",
    "ops",
    "New jobs per second, by result.",
    "sum by (result) (rate(redrive_enqueued_total[$__rate_interval]))",
    "{{result}}",
  ],
  [
    "Run time, 95 %",
    "s",
    "Duration below which 95 of 100 runs stay, by type.",
    quantile("redrive_run_seconds"),
    "{{type}}",
  ],
  [
    "Wait, 95 %",
    "s",
    "Time from due to start that 95 of 100 runs stay below, by type.",
    quantile("redrive_wait_seconds"),
    "{{type}}",
  ],
  ["Due", "short", "Jobs that are due and wait for a worker, by type.", "max by (type) (redrive_due)", "{{type}}"],
  [
    "Oldest due",
    "s",
    "How long the oldest job has been due, by type.",
    "max by (type) (redrive_oldest_due_seconds)",
    "{{type}}",
  ],
  [
    "Dead letters",
    "short",
    "Dead letters that wait for a person, by type.",
    "max by (type) (redrive_dead_letters)",
    "{{type}}",
  ],
  ["Causes", "short", "Causes with dead letters, by state.", "max by (state) (redrive_causes)", "{{state}}"],
  [
    "Breakers",
    "short",
    "1 while the breaker of a service is not closed.",
    "max by (service) (redrive_breaker_open)",
    "{{service}}",
  ],
  [
    "Parked",
    "short",
    "Due jobs that wait for a breaker, by service.",
    "max by (service) (redrive_parked)",
    "{{service}}",
  ],
  ["Slots", "short", "Slots of all workers, busy and free.", "sum by (state) (redrive_slots)", "{{state}}"],
  [
    "Store calls, mean",
    "s",
    "Mean duration of calls to the store, by verb.",
    "sum by (verb) (rate(redrive_store_seconds_sum[$__rate_interval])) / sum by (verb) (rate(redrive_store_seconds_count[$__rate_interval]))",
    "{{verb}}",
  ],
];

const source = { type: "prometheus", uid: "${source}" };
const panels = PANELS.map(([title, unit, description, expr, legendFormat], at) => ({
  id: at + 1,
  type: "timeseries",
  title,
  description,
  datasource: source,
  gridPos: { h: 7, w: 6, x: (at % 4) * 6, y: Math.floor(at / 4) * 7 },
  fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
  targets: [{ refId: "A", datasource: source, expr, legendFormat, exemplar: expr.includes("_bucket") }],
}));

const board = {
  title: "Redrive",
  uid: "redrive",
  tags: ["redrive"],
  schemaVersion: 39,
  editable: true,
  time: { from: "now-1h", to: "now" },
  refresh: "30s",
  templating: { list: [{ name: "source", label: "Prometheus", type: "datasource", query: "prometheus" }] },
  panels,
};
writeFileSync(FILE, `${JSON.stringify(board, null, 2)}\n`);
