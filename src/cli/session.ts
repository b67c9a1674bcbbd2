// One call of the command line: its global options, its config, its log, and the queue it opens. Flags override the
// environment, the environment overrides the config file.
import { isRedriveError, RedriveError } from "../core/errors.ts";
import type { PolicyOptions } from "../core/policy.ts";
import { checkActor } from "../core/event-log.ts";
import { JOB_BOUNDS } from "../core/new-job.ts";
import { redactJson } from "../core/redact.ts";
import { openStore } from "../open-store.ts";
import type { JobDefinition } from "../jobs/define-job.ts";
import { jsonText } from "../operate/json-form.ts";
import type { Producer } from "../enqueue/producer.ts";
import type { Redrive } from "../redrive-api.ts";
import type { Traces } from "../report/traces.ts";
import type { StoreAddress } from "../store/inspection.ts";
import type { Store } from "../store/store.ts";
import type { Log, LogLevel } from "../system/log.ts";
import { put } from "../system/output.ts";
import { realSystem } from "../system/real.ts";
import { cliJsonLog, cliLog, formatFrom, levelFrom } from "./cli-log.ts";
import { type Config, findConfig, NO_CONFIG } from "../config/find-config.ts";
import type { Io } from "./io.ts";
import { type Paint, paintFor } from "./paint.ts";
import { NO_PROGRESS, openProgressLine, type ProgressLine } from "./progress-line.ts";
import { masked, quoted, safeLine } from "../core/safe-text.ts";
import { storeAddress } from "../config/store-address.ts";
import { DEFAULT_STORE } from "../core/store-urls.ts";

/** The options that every command takes. */
export interface GlobalOptions {
  readonly store?: string;
  readonly config?: string;
  readonly json?: boolean;
  /** Masks values that look like secrets in the JSON answer. */
  readonly redact?: boolean;
  readonly quiet?: boolean;
  /** The form of log lines. */
  readonly log?: string;
}

/** What a queue is opened with. */
export interface QueueOptions {
  readonly jobs?: readonly JobDefinition[];
  readonly defaults?: PolicyOptions;
  /** Creates the folder of the file where it is missing; default false, because its name may be mistyped. */
  readonly makesFolder?: boolean;
}

/** One call of a command. */
export interface Session {
  readonly io: Io;
  readonly json: boolean;
  readonly quiet: boolean;
  readonly redact: boolean;
  readonly config: Config;
  readonly address: StoreAddress;
  readonly log: Log;
  readonly paint: Paint;
  readonly progress: ProgressLine;
  /** Columns of the terminal; Infinity where there is none. */
  readonly width: number;
  /** Opens the queue; the file is created where there is none. */
  open(options?: QueueOptions): Promise<Redrive>;
  /** Opens only the producer, for a call that writes a job and exits; the file is created where there is none. */
  openProducer(options?: QueueOptions): Promise<Producer>;
  /** Opens the queue of an existing file or schema. */
  openExisting(options?: Pick<QueueOptions, "jobs">): Promise<Redrive>;
  /** Writes a result: one JSON document with `--json`, else the text. */
  show(document: unknown, text: () => string): void;
  /** The same for the summary of a change, which `--quiet` suppresses. */
  answer(document: unknown, text: () => string): void;
  /** A command to type next, for the same store as this call. */
  suggest(command: string): string;
  /** Writes a line to stderr, unless `--quiet`. */
  say(line: string): void;
  close(): Promise<void>;
  /** Leaves the store without closing it: it does not answer, and the process must end. */
  abandon(): void;
}

/** Begins a call; `level` is the log level of the command where neither flag nor variable sets one. */
export async function openSession(io: Io, options: GlobalOptions, level: LogLevel = "warn"): Promise<Session> {
  const { json = false, quiet = false, redact = false } = options;
  const wanted = levelFrom(io.env) ?? (quiet ? "error" : level);
  const isJsonLog = formatFrom(io.env, options.log) === "json";
  const file = findConfig(options.config, io.cwd);
  const config = file === null ? NO_CONFIG : await (await import("../config/load-config.ts")).loadConfig(file);
  const address = addressOf(options.store, io, config);
  const progress = isJsonLog ? NO_PROGRESS : openProgressLine(io);
  const log = isJsonLog ? cliJsonLog(io, wanted) : cliLog(io, wanted, (line) => progress.say(line));
  // What a command says of itself is a line of the log, whatever the level of the log.
  const spoken = isJsonLog ? cliJsonLog(io, "info") : null;
  const queue = openings({ address, config, log }, actorFrom(io));
  const show = showing(io, { json, redact });
  return {
    io,
    json,
    quiet,
    redact,
    config,
    address,
    log,
    progress,
    paint: paintFor(io.stdout, io.env),
    width: io.stdout.isTTY ? io.stdout.columns || 80 : Number.POSITIVE_INFINITY,
    ...queue,
    show,
    answer(document, text) {
      if (json || !quiet) show(document, text);
    },
    suggest: (command) => [io.program, command, ...placeFlags(options)].join(" "),
    say(line) {
      if (quiet) return;
      if (spoken) spoken.info({}, line);
      else progress.say(`${line}\n`);
    },
  };
}

type Openings = Pick<Session, "open" | "openProducer" | "openExisting" | "close" | "abandon">;

/** The ways to open and close the queue of a call; each loads only what it needs. */
function openings(
  { address, config, log }: Pick<Session, "address" | "config" | "log">,
  actor: { readonly actor?: string },
): Openings {
  let closing: (() => Promise<void>) | null = null;
  const openHere = async (makesFolder: boolean, brief = false): Promise<Store> => {
    if (!makesFolder) (await address.inspect()).checkPlace();
    const store = await openStore(address.url, { brief });
    closing = () => store.close();
    return store;
  };
  const open = async (given: QueueOptions = {}, existing = false): Promise<Redrive> => {
    const { jobs = [], defaults = {}, makesFolder = false } = given;
    const store = await openHere(makesFolder);
    if (existing && !(await (await address.inspect()).isMade(store))) throw noStore(address);
    const { services, tenants, traces, health, fleetAlerts } = config;
    const alerts = fleetAlerts === null ? {} : { alerts: fleetAlerts };
    const { createRedrive } = await import("../redrive.ts");
    const redrive = await createRedrive({
      store,
      jobs,
      defaults,
      services,
      tenants,
      traces,
      health,
      log,
      ...alerts,
      ...actor,
    });
    closing = async () => {
      await redrive.close();
      await store.close();
    };
    return redrive;
  };
  return {
    open,
    async openProducer({ jobs = [], defaults = {}, makesFolder = false } = {}) {
      const { openProducer } = await import("../enqueue/producer.ts");
      const store = await openHere(makesFolder, true);
      await store.migrate();
      const maxPayloadBytes = JOB_BOUNDS.payloadBytes;
      const traces = await tracesOf(config, log);
      return openProducer({ store, system: realSystem, log, events: null, jobs, defaults, maxPayloadBytes, traces });
    },
    // Skips the check of the folder: the error about a missing store says more.
    openExisting: (given = {}) => open({ ...given, defaults: config.defaults, makesFolder: true }, true),
    async close() {
      const close = closing;
      closing = null;
      await close?.();
    },
    abandon() {
      closing = null;
    },
  };
}

/** Loads what makes spans only where the config file asks for it. */
async function tracesOf({ traces }: Config, log: Log): Promise<Traces | null> {
  if (traces === false) return null;
  return (await import("../report/traces.ts")).openTraces(traces === "link" ? "link" : "child", log);
}

function showing({ stdout }: Io, { json, redact }: Pick<Session, "json" | "redact">): Session["show"] {
  return (document, text) => {
    if (json) put(stdout, "json", `${redact ? redactJson(jsonText(document)) : jsonText(document)}\n`);
    else put(stdout, "text", text());
  };
}

/** The flags that name the store, as they were given. */
function placeFlags(options: GlobalOptions): string[] {
  return (["config", "store"] as const).flatMap((name) => {
    const value = options[name];
    return value === undefined ? [] : [`--${name} ${quoted(masked(safeLine(value)))}`];
  });
}

/** The error for a store that does not exist. */
export function noStore({ shown }: StoreAddress): RedriveError {
  const message = `There is no store at ${shown}. Name it with --store or REDRIVE_STORE, or make one: enqueue a job, or run \`migrate\`.`;
  return new RedriveError("store_unavailable", message);
}

function addressOf(flag: string | undefined, io: Io, config: Config): StoreAddress {
  if (flag !== undefined) return storeAddress(flag, io.cwd);
  const variable = io.env.REDRIVE_STORE;
  if (!variable) return config.store ?? storeAddress(DEFAULT_STORE, io.cwd);
  try {
    return storeAddress(variable, io.cwd);
  } catch (error) {
    if (!isRedriveError(error)) throw error;
    throw new RedriveError("config_refused", error.message.replace(/^store/, "REDRIVE_STORE"), { cause: error });
  }
}

/** Who acts, where the environment says so. */
function actorFrom({ env }: Io): { readonly actor?: string } {
  const { REDRIVE_ACTOR: actor } = env;
  if (actor === undefined || actor === "") return {};
  try {
    checkActor("REDRIVE_ACTOR", actor);
    return { actor: actor.trim() };
  } catch (error) {
    if (!isRedriveError(error)) throw error;
    throw new RedriveError("config_refused", error.message, { cause: error });
  }
}
