// What `worker` and `drain` share: the files with job definitions, the flags about a worker, and where its defaults come
// from.
import { relative, resolve } from "node:path";
import type { Command } from "commander";
import { isRedriveError, RedriveError } from "../core/errors.ts";
import type { PolicyOptions } from "../core/policy.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import type { RedriveWorkerOptions } from "../worker/redrive-worker-api.ts";
import { resolveWorker, WORKER_DEFAULTS } from "../worker/settings.ts";
import { checkArchive } from "./archive-file.ts";
import { collected, defined, type Flags, numeric, textual } from "./command.ts";
import { type EnvironmentOf, mergedDefaults, policyFromEnvironment } from "../config/environment.ts";
import { childIsolation } from "../child-isolation.ts";
import { loadJobs } from "../config/load-jobs.ts";
import type { Session } from "./session.ts";

/** Adds the flags about a worker. */
export function workerFlags(command: Command): Command {
  return command
    .option(
      "--jobs <file>",
      "module whose exports are job definitions; may be given again (default: those of the config file)",
      collected,
    )
    .option(
      "--concurrency <n>",
      `jobs at the same time (default ${WORKER_DEFAULTS.concurrency}, or that of the config file)`,
    )
    .option("--lease <duration>", "how long it is trusted without a sign of life (default 30s)")
    .option("--heartbeat <duration>", "how often it gives one (default 5s)")
    .option("--queues <a,b>", "queues to serve (default all)")
    .option("--health-port <n>", "port that answers /live and /ready")
    .option("--health-host <host>", "address of that port (default 127.0.0.1)")
    .option("--archive <file>", "keep dead letters here before their retention deletes them")
    .option("--release <text>", "version of your program, stored with every run");
}

/** The files with job definitions: those of the flags, else those of the config file. */
export function jobFiles(session: Session, flags: Flags): readonly string[] {
  const given = flags.jobs as string[] | undefined;
  return given === undefined ? session.config.jobs : given.map((file) => resolve(session.io.cwd, file));
}

/** The same as people call them: by their path from here where that is shorter. */
export function jobFileNames(session: Session, flags: Flags): string[] {
  return jobFiles(session, flags).map((file) => {
    const fromHere = relative(session.io.cwd, file);
    return fromHere.length < file.length ? fromHere : file;
  });
}

/** The job definitions of the call; a bad file that the config names is the config's fault. */
export async function definitions(session: Session, flags: Flags): Promise<JobDefinition[]> {
  try {
    return await loadJobs(jobFiles(session, flags));
  } catch (error) {
    if (flags.jobs !== undefined || !isRedriveError(error)) throw error;
    throw new RedriveError("config_refused", `${session.config.file}: ${error.message}`, { cause: error });
  }
}

/** The job definitions; refuses to go on without any. */
export async function requiredDefinitions(session: Session, flags: Flags): Promise<JobDefinition[]> {
  if (jobFiles(session, flags).length > 0) return definitions(session, flags);
  const message =
    "jobs: expected a file with job definitions; got none; pass --jobs FILE, or write `jobs: FILE` into redrive.config.yaml";
  throw new RedriveError("invalid_argument", message);
}

/** The defaults of every job type: config file, and above it the environment. */
export function defaultsOf({ config, io }: Session, command: EnvironmentOf): PolicyOptions {
  return mergedDefaults(config.defaults, policyFromEnvironment(io.env, command));
}

/** The options of the worker: flags above the config file. */
export function workerOptions(session: Session, flags: Flags, environment: EnvironmentOf): RedriveWorkerOptions {
  const { config, address, io } = session;
  const { health, archive, ...rest } = config.worker;
  const port = numeric(flags.healthPort) ?? health?.port;
  const host = textual(flags.healthHost) ?? health?.host;
  if (port === undefined && flags.healthHost !== undefined)
    throw new RedriveError("invalid_argument", "health-host: expected --health-port beside it; got none; add it");
  const kept = textual(flags.archive);
  const options = {
    ...rest,
    ...defined({
      concurrency: numeric(flags.concurrency),
      lease: textual(flags.lease),
      heartbeat: textual(flags.heartbeat),
      queues: textual(flags.queues)
        ?.split(",")
        .map((name) => name.trim()),
      release: textual(flags.release),
    }),
  };
  // Before anything is opened or made: what is wrong about the flags is wrong without a store.
  resolveWorker(options);
  const archiveFile = kept === undefined ? archive : resolve(io.cwd, kept);
  if (archiveFile !== undefined) checkArchive(archiveFile, kept === undefined ? "config" : "flag");
  return {
    ...options,
    ...defined({
      archive: archiveFile,
      health: port === undefined ? undefined : { port, ...(host !== undefined && { host }) },
    }),
    isolation: (settings) =>
      childIsolation({
        ...settings,
        store: address.url,
        jobs: jobFiles(session, flags),
        config: config.file,
        environment,
      }),
  };
}
