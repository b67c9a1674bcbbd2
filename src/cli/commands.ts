// The commands by name, each with its line in the list of `redrive --help`. The rest of a command (its flags, its help,
// its action) is in its module, which is loaded only when a call names the command.
import type { Cli } from "./command.ts";

/** One command before its module is loaded. */
export interface CommandEntry {
  readonly name: string;
  /** The arguments shown after the name in the list; a test compares them with the module. */
  readonly takes?: string;
  readonly summary: string;
  /** Loads the module, which adds flags, help and action to the command. */
  load(): Promise<{ register(cli: Cli): void }>;
}

/** Every command, in the order of the list. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: "demo",
    takes: "[options]",
    summary: "watch Redrive handle a bad day; needs no setup",
    load: () => import("./demo-command.ts"),
  },
  {
    name: "init",
    takes: "[options]",
    summary: "write a first job type and a config file into this folder",
    load: () => import("./init.ts"),
  },
  {
    name: "enqueue",
    takes: "[options] <type> [payload]",
    summary: "put jobs into the queue",
    load: () => import("./enqueue.ts"),
  },
  {
    name: "worker",
    takes: "[options]",
    summary: "run jobs until stopped",
    load: () => import("./worker.ts"),
  },
  {
    name: "up",
    takes: "[options]",
    summary: "serve the HTTP API and the dashboard, and run jobs, in one process",
    load: () => import("./up.ts"),
  },
  {
    name: "drain",
    takes: "[options]",
    summary: "run all due jobs, wait for those due soon, then exit",
    load: () => import("./drain.ts"),
  },
  {
    name: "batch",
    takes: "[options] <command...>",
    summary: "run a list of items through a command, in batches, and retry failed items",
    load: () => import("./batch.ts"),
  },
  { name: "jobs", summary: "list, explain, cancel, retry and reschedule jobs", load: () => import("./jobs.ts") },
  {
    name: "dlq",
    summary: "list, count, repair, retry, remove and export dead letters",
    load: () => import("./dlq.ts"),
  },
  {
    name: "plan",
    takes: "[options] [ids...]",
    summary: "plan a redrive: what it sends, how fast, and what to know first",
    load: () => import("./plan.ts"),
  },
  {
    name: "start",
    takes: "[options] <plan>",
    summary: "start a planned redrive, a canary first",
    load: () => import("./start.ts"),
  },
  {
    name: "redrives",
    summary: "list, show, pause, resume, cancel and recall redrive runs",
    load: () => import("./redrives.ts"),
  },
  {
    name: "stuck",
    summary: "list and end stuck runs",
    load: () => import("./stuck.ts"),
  },
  {
    name: "breakers",
    summary: "list, open, close and reset the breakers of services",
    load: () => import("./breakers.ts"),
  },
  { name: "queues", summary: "list, pause and resume queues", load: () => import("./queues.ts") },
  {
    name: "limits",
    summary: "show rate limits, retry budgets and weights, and what is left of them",
    load: () => import("./limits.ts"),
  },
  {
    name: "schedules",
    summary: "list, add, pause, run and remove schedules",
    load: () => import("./schedules.ts"),
  },
  {
    name: "events",
    takes: "[options]",
    summary: "show what operators did and why, and what workers noticed",
    load: () => import("./events.ts"),
  },
  { name: "stats", summary: "count the jobs in each state", load: () => import("./stats.ts") },
  {
    name: "health",
    takes: "[options]",
    summary: "report the health of the queue",
    load: () => import("./health.ts"),
  },
  {
    name: "metrics",
    takes: "[options]",
    summary: "print the gauges of the fleet for Prometheus, or serve them on a port",
    load: () => import("./metrics.ts"),
  },
  { name: "alerts", summary: "list, mute and test the alerts of the fleet", load: () => import("./alerts.ts") },
  { name: "tokens", summary: "make, list and revoke tokens of the HTTP API", load: () => import("./tokens.ts") },
  {
    name: "monitoring",
    summary: "print the Grafana board and the alert rules for Prometheus",
    load: () => import("./monitoring.ts"),
  },
  {
    name: "migrate",
    takes: "[options]",
    summary: "create the store, or upgrade its schema",
    load: () => import("./migrate.ts"),
  },
  {
    name: "doctor",
    summary: "check machine, store and work, with a remedy for each problem",
    load: () => import("./doctor.ts"),
  },
  {
    name: "completion",
    takes: "<shell>",
    summary: "print a completion script for your shell",
    load: () => import("./completion.ts"),
  },
];
