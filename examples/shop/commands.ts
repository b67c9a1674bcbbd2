// What to type next: commands that work on the demo's file as they stand, from where the demo was started.
import { createRequire } from "node:module";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { CauseCount, FailureClass } from "redrive";
import { cutTo, shellWord } from "../kit/words.ts";
import { shortCause } from "./cause.ts";

/** Commands with what they are good for. */
export interface NextCommands {
  readonly why: string;
  readonly commands: readonly string[];
}

/** The top of the package, whether installed or a checkout. */
const PACKAGE = dirname(createRequire(import.meta.url).resolve("redrive/package.json"));

/** Failures that pass by themselves, so that another try may succeed. */
const PASSES: readonly FailureClass[] = ["transient", "network", "timeout", "rate_limited"];

/** How the command line is called from this folder. */
export function programFrom(cwd: string): string {
  if (PACKAGE.split(sep).includes("node_modules")) return "npx redrive";
  return `node ${shellWord(relative(cwd, join(PACKAGE, "bin", "redrive.js")))}`;
}

/** The commands for a store with these causes of death; `example` is the id of a dead job. */
export function nextCommands(options: {
  readonly store: string;
  readonly cwd: string;
  readonly causes: readonly CauseCount[];
  readonly example: string | null;
}): NextCommands[] {
  const { store, cwd, causes, example } = options;
  const type = (command: string): string => `${programFrom(cwd)} ${command} --store ${shellWord(store)}`;
  const jobs = relative(cwd, fileURLToPath(new URL("./jobs.js", import.meta.url)));
  const look = [
    "dlq stats",
    "dlq list",
    ...(example === null ? [] : [`dlq show ${example}`]),
    "jobs list --state dead",
  ];
  // What the outage broke deserves another try; what is wrong in itself would only die again.
  const cause = causes.find((one) => one.class === "transient") ?? causes.find((one) => PASSES.includes(one.class));
  const again = cause && {
    why: `The services are well again: redrive "${cutTo(shortCause(cause.message), 40)}"`,
    commands: [type(`dlq retry --fingerprint ${cause.fingerprint}`), type(`drain --jobs ${shellWord(jobs)}`)],
  };
  return [{ why: "Why did they die, and after which tries?", commands: look.map(type) }, ...(again ? [again] : [])];
}
