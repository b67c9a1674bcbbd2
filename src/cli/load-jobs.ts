// Job definitions from a module: every export that is one.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { RedriveError } from "../core/errors.ts";
import { isJobDefinition, type JobDefinition } from "../queue/define-job.ts";

/** Loads the module and returns its job definitions; refuses a module without any, and two of one type. */
export async function loadJobs(file: string): Promise<JobDefinition[]> {
  let module: Record<string, unknown>;
  try {
    module = (await import(pathToFileURL(resolve(file)).href)) as Record<string, unknown>;
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new RedriveError("invalid_argument", `jobs: expected a module that can be loaded; ${file} cannot: ${said}`, {
      cause,
    });
  }
  const found = new Set(Object.values(module).filter(isJobDefinition));
  if (found.size === 0)
    throw new RedriveError("invalid_argument", `jobs: expected exports made by defineJob; ${file} has none`);
  const jobs = [...found];
  const twice = jobs.find(({ type }, at) => jobs.findIndex((other) => other.type === type) !== at);
  if (twice)
    throw new RedriveError(
      "invalid_argument",
      `jobs: expected one definition per type; ${file} has two of "${twice.type}"`,
    );
  return jobs;
}
