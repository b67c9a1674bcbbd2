// What `worker` and `drain` share: the flags about a worker, and where its defaults come from.
import { resolve } from "node:path";
import type { Command } from "commander";
import { RedriveError } from "../core/errors.ts";
import type { PolicyOptions } from "../core/policy.ts";
import type { RedriveWorkerOptions } from "../worker/redrive-worker-api.ts";
import { resolveWorker, WORKER_DEFAULTS } from "../worker/settings.ts";
import { checkArchive } from "./archive-file.ts";
import { collected, defined, type Flags, numeric, textual } from "./command.ts";
import { type EnvironmentOf, mergedDefaults, policyFromEnvironment } from "../config/environment.ts";
import { childIsolation } from "../child-isolation.ts";
import { jobFiles } from "./job-files.ts";
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
