// The commands by name, with what the list of them in `redrive --help` shows. The rest of a command (its flags, its help,
// what it does) is in its module, which is loaded when a call names it: a call pays for its own command only.
import type { Cli } from "./command.ts";

/** One command before its module is loaded. */
export interface CommandEntry {
  readonly name: string;
  /** What stands behind the name in the list; a test compares it with the module. */
  readonly takes?: string;
  readonly summary: string;
  /** Loads the module, which puts flags, help and action to the command. */
  load(): Promise<{ register(cli: Cli): void }>;
}

/** Every command, in the order of the list. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: "demo",
    takes: "[options]",
    summary: "watch Redrive on a bad day, with nothing to set up",
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
    summary: "take jobs and run them until told to stop",
    load: () => import("./worker.ts"),
  },
  {
    name: "drain",
    takes: "[options]",
    summary: "run what is due, wait for what falls due soon, then end",
    load: () => import("./drain.ts"),
  },
  {
    name: "batch",
    takes: "[options] <command...>",
    summary: "run a list of items through a command, in batches, and retry what failed",
    load: () => import("./batch.ts"),
  },
  { name: "jobs", summary: "look at jobs, and change what waits", load: () => import("./jobs.ts") },
  { name: "dlq", summary: "look at dead letters, retry, remove or export them", load: () => import("./dlq.ts") },
  {
    name: "stuck",
    summary: "runs that take longer than they may, and ending them now",
    load: () => import("./stuck.ts"),
  },
  {
    name: "breakers",
    summary: "look at the breakers of services, and change them",
    load: () => import("./breakers.ts"),
  },
  { name: "queues", summary: "look at queues, pause and resume them", load: () => import("./queues.ts") },
  {
    name: "limits",
    summary: "rate limits, retry budgets and weights of the fleet, and what is left of them",
    load: () => import("./limits.ts"),
  },
  {
    name: "schedules",
    summary: "jobs at set times: look at them and change them",
    load: () => import("./schedules.ts"),
  },
  { name: "stats", summary: "how many jobs there are in each state", load: () => import("./stats.ts") },
  { name: "health", summary: "is everything all right", load: () => import("./health.ts") },
  {
    name: "migrate",
    takes: "[options]",
    summary: "make the store, or bring its schema up to date",
    load: () => import("./migrate.ts"),
  },
  { name: "doctor", summary: "check machine, store and work, and say what to do", load: () => import("./doctor.ts") },
  {
    name: "completion",
    takes: "<shell>",
    summary: "print a script that completes commands and flags in your shell",
    load: () => import("./completion.ts"),
  },
];
