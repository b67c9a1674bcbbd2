// The files with job definitions that a call uses.
import { relative, resolve } from "node:path";
import { isRedriveError, RedriveError } from "../core/errors.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { collected, type Flags } from "./command.ts";
import type { Session } from "./session.ts";

/** The flag that names them. */
export const JOBS_FLAG = [
  "--jobs <file>",
  "module that exports job definitions; repeatable (default: jobs of the config file)",
  collected,
] as const;

/** The files with job definitions: from the flags, else from the config file. */
export function jobFiles(session: Session, flags: Flags): readonly string[] {
  const given = flags.jobs as string[] | undefined;
  return given === undefined ? session.config.jobs : given.map((file) => resolve(session.io.cwd, file));
}

/** The same paths for people: relative to the working directory where that is shorter. */
export function jobFileNames(session: Session, flags: Flags): string[] {
  return jobFiles(session, flags).map((file) => {
    const fromHere = relative(session.io.cwd, file);
    return fromHere.length < file.length ? fromHere : file;
  });
}

/** The job definitions of the call. An error in a file that the config names is an error of the config. */
export async function definitions(session: Session, flags: Flags): Promise<JobDefinition[]> {
  try {
    const { loadJobs } = await import("../config/load-jobs.ts");
    return await loadJobs(jobFiles(session, flags));
  } catch (error) {
    if (flags.jobs !== undefined || !isRedriveError(error)) throw error;
    throw new RedriveError("config_refused", `${session.config.file}: ${error.message}`, { cause: error });
  }
}

/** The job definitions; throws where there are none. */
export async function requiredDefinitions(session: Session, flags: Flags): Promise<JobDefinition[]> {
  if (jobFiles(session, flags).length > 0) return definitions(session, flags);
  const message =
    "jobs: expected a file with job definitions; got none; pass --jobs FILE, or write `jobs: FILE` into redrive.config.yaml";
  throw new RedriveError("invalid_argument", message);
}
