// The flags that `worker` and `drain` share, and where their defaults come from.
import { resolve } from "node:path";
import type { Command } from "commander";
import { RedriveError } from "../core/errors.ts";
import type { PolicyOptions } from "../core/policy.ts";
import type { RedriveWorkerOptions } from "../worker/redrive-worker-api.ts";
import { resolveWorker, WORKER_DEFAULTS } from "../worker/settings.ts";
import { checkArchive } from "./archive-file.ts";
import { defined, type Flags, numeric, textual } from "./command.ts";
import { type EnvironmentOf, mergedDefaults, policyFromEnvironment } from "../config/environment.ts";
import { childIsolation } from "../child-isolation.ts";
import { jobFiles, JOBS_FLAG } from "./job-files.ts";
import { tokenFrom } from "./metrics-token.ts";
import type { Session } from "./session.ts";

/** Adds the flags of a worker. */
export function workerFlags(command: Command): Command {
  return command
    .option(...JOBS_FLAG)
    .option(
      "--concurrency <n>",
      `jobs run at the same time (default ${WORKER_DEFAULTS.concurrency}, or the config file)`,
    )
    .option("--lease <duration>", "how long the worker keeps its jobs without a heartbeat (default 30s)")
    .option("--heartbeat <duration>", "interval between heartbeats (default 5s)")
    .option("--queues <a,b>", "queues to serve (default all)")
    .option("--health-port <n>", "port that answers /live, /ready and /metrics")
    .option("--health-host <host>", "address of that port (default 127.0.0.1)")
    .option(
      "--metrics-token-file <file>",
      "file with the secret that /metrics wants; without one it is on loopback only",
    )
    .option("--archive <file>", "append dead letters to this file before retention deletes them")
    .option("--release <text>", "version of your program, stored with every run");
}

/** The defaults of every job type: the config file, overridden by the environment. */
export function defaultsOf({ config, io }: Session, command: EnvironmentOf): PolicyOptions {
  return mergedDefaults(config.defaults, policyFromEnvironment(io.env, command));
}

/** The options of the worker: the config file, overridden by flags. */
export function workerOptions(session: Session, flags: Flags, environment: EnvironmentOf): RedriveWorkerOptions {
  const { config, address, io } = session;
  const { health, archive, ...rest } = config.worker;
  const port = numeric(flags.healthPort) ?? health?.port;
  const host = textual(flags.healthHost) ?? health?.host;
  const metricsToken = tokenFrom(session, textual(flags.metricsTokenFile)) ?? health?.metricsToken;
  for (const [flag, value] of [
    ["health-host", flags.healthHost],
    ["metrics-token-file", flags.metricsTokenFile],
  ])
    if (port === undefined && value !== undefined)
      throw new RedriveError("invalid_argument", `expected --health-port beside --${flag as string}; got none; add it`);
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
  // Checked before any file is opened or created: bad flags are bad without a store.
  resolveWorker(options);
  const archiveFile = kept === undefined ? archive : resolve(io.cwd, kept);
  if (archiveFile !== undefined) checkArchive(archiveFile, kept === undefined ? "config" : "flag");
  return {
    ...options,
    ...defined({
      archive: archiveFile,
      health: port === undefined ? undefined : { port, ...defined({ host, metricsToken }) },
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
