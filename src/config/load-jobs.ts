// Loads job definitions from modules: every export that is one, and those in exported arrays.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { RedriveError } from "../core/errors.ts";
import { isJobDefinition, type JobDefinition } from "../jobs/define-job.ts";
import { oneLine } from "../core/safe-text.ts";
import { whyRefused } from "../system/trusted-file.ts";
import { loadModule } from "./load-module.ts";

/** Loads the modules and returns their job definitions; refuses a module without any, and two of one type. */
export async function loadJobs(files: string | readonly string[]): Promise<JobDefinition[]> {
  const found = new Set<JobDefinition>();
  const list = typeof files === "string" ? [files] : files;
  for (const file of list) for (const job of await jobsOf(file)) found.add(job);
  const jobs = [...found];
  const twice = jobs.find(({ type }, at) => jobs.findIndex((other) => other.type === type) !== at);
  if (twice) throw refused(`expected one definition per type; ${list.join(", ")} has two of "${twice.type}"`);
  return jobs;
}

async function jobsOf(file: string): Promise<JobDefinition[]> {
  const path = resolve(file);
  const why = whyRefused(path);
  if (why !== null) throw refused(`expected a file that only you or root can change; ${path} ${why}`);
  if (!existsSync(path))
    throw refused(`expected a module with job definitions; got ${file}, which does not exist; check the path`);
  let module: Record<string, unknown>;
  try {
    module = await loadModule(path);
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw refused(`expected a module that can be loaded; got an error from ${file}: ${oneLine(said)}`, cause);
  }
  const jobs = Object.values(module).flat().filter(isJobDefinition);
  if (jobs.length === 0)
    throw refused(`expected exports made by defineJob; got none in ${file}; export the definitions`);
  return jobs;
}

function refused(message: string, cause?: unknown): RedriveError {
  return new RedriveError("invalid_argument", `jobs: ${message}`, { cause });
}
