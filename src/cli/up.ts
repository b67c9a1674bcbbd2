// `redrive up`: the API, the dashboard, a worker and upkeep in one process.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Duration, parseDuration } from "../core/duration.ts";
import { RedriveError } from "../core/errors.ts";
import { checkInteger } from "../core/new-job.ts";
import type { Access, HttpHandler } from "../http/index.ts";
import type { Store } from "../store/store.ts";
import { put } from "../system/output.ts";
import { realSystem } from "../system/real.ts";
import { type HttpServer, serveHttp } from "../http/serve.ts";
import { isLoopback } from "../worker/health-port.ts";
import type { RedriveWorker } from "../worker/redrive-worker-api.ts";
import { type Cli, collected, examples, type Flags, numeric, textual } from "./command.ts";
import { definitions } from "./job-files.ts";
import type { Session } from "./session.ts";
import { supervise } from "./supervise.ts";
import { defaultsOf, workerFlags, workerOptions } from "./worker-flags.ts";

const NOTES = `
Prints the address and a link that signs a browser in; the link is good for five
minutes and one sign-in, and \`redrive up --link\` prints another. Programs send
a bearer token: REDRIVE_TOKEN or --token-file sets the admin's (32 characters or
more), \`redrive tokens add\` makes others. With --json it writes one line
{"url","signIn"} when it serves.

Listens on 127.0.0.1. Any other address needs a token, and TLS or the flag
--insecure-http, for a proxy that does TLS before it. The first SIGINT or SIGTERM
ends it once open requests and running jobs have ended, --within the time.`;

const PORT = 4180;
/** How often `/ready` learns whether the store answers, and how long that may take. */
const CONTACT_MS = 1_000;
const TOKEN_LEAST = 32;

/** Registers `up`. */
export function register(cli: Cli): void {
  const command = workerFlags(cli.command)
    .option("--port <n>", "port to listen on; 0 lets the system choose", String(PORT))
    .option("--host <host>", "address to listen on", "127.0.0.1")
    .option("--no-worker", "serve only; other processes run the jobs")
    .option("--token-file <file>", "file with the admin's bearer token, instead of REDRIVE_TOKEN")
    .option("--allow-host <name>", "further name under which it may be asked; repeatable", collected)
    .option("--insecure-http", "allow plain HTTP on an address that other machines reach")
    .option("--tls-cert <file>", "certificate, in PEM form")
    .option("--tls-key <file>", "its key, in PEM form")
    .option("--dashboard-dir <folder>", "serve the files of the dashboard from this folder")
    .option("--link", "print another sign-in link for a server that runs, and exit")
    .option("--within <duration>", "time for requests and jobs to end after a stop signal", "25s")
    .addHelpText("after", NOTES);
  examples(command, cli, [
    "up --jobs jobs.ts",
    "up --port 0 --json",
    "up --no-worker --host 0.0.0.0 --tls-cert c.pem --tls-key k.pem",
  ]);
  cli.act(command, (session, _args, flags) => (flags.link === true ? link(session, flags) : up(session, flags)), {
    level: () => "info",
  });
}

/** Where and how the server listens, checked. */
interface Listening {
  readonly port: number;
  readonly host: string;
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | null;
  readonly token: string | null;
  readonly hosts: readonly string[];
}

function listeningFrom(session: Session, flags: Flags): Listening {
  const port = numeric(flags.port) ?? PORT;
  checkInteger("port", port, 0, 65_535);
  const host = textual(flags.host) ?? "127.0.0.1";
  const [cert, key] = [textual(flags.tlsCert), textual(flags.tlsKey)];
  if ((cert === undefined) !== (key === undefined))
    throw new RedriveError(
      "config_refused",
      "expected --tls-cert and --tls-key together; got one of them; add the other",
    );
  const file = (path: string, flag: string): Buffer => {
    try {
      return readFileSync(resolve(session.io.cwd, path));
    } catch (cause) {
      throw new RedriveError("config_refused", `expected a file for ${flag}; ${path} cannot be read`, { cause });
    }
  };
  const tls =
    cert === undefined || key === undefined ? null : { cert: file(cert, "--tls-cert"), key: file(key, "--tls-key") };
  if (!isLoopback(host) && tls === null && flags.insecureHttp !== true)
    throw new RedriveError(
      "config_refused",
      `host: expected a loopback address, TLS (--tls-cert, --tls-key) or --insecure-http; got ${host} without it; add one`,
    );
  const hosts = [
    "localhost",
    "127.0.0.1",
    "[::1]",
    ...(isLoopback(host) || host === "0.0.0.0" || host === "::" ? [] : [host]),
  ];
  const allowed = (flags.allowHost as string[] | undefined) ?? [];
  return { port, host, tls, token: tokenOf(session, flags), hosts: [...hosts, ...allowed] };
}

/** The admin's token, from the file or the environment; null for none. An empty one is refused, not ignored. */
function tokenOf({ io }: Session, flags: Flags): string | null {
  const path = textual(flags.tokenFile);
  const given = path === undefined ? io.env.REDRIVE_TOKEN : readSecret(resolve(io.cwd, path));
  if (given === undefined) return null;
  const token = given.trim();
  if (token.length < TOKEN_LEAST || token.length > 255 || /\s/.test(token)) {
    const from = path === undefined ? "REDRIVE_TOKEN" : "the file of --token-file";
    throw new RedriveError(
      "config_refused",
      `expected ${TOKEN_LEAST} to 255 characters without spaces in ${from}; correct it`,
    );
  }
  return token;
}

function readSecret(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new RedriveError("config_refused", `expected a file with a secret for --token-file; ${path} cannot be read`, {
      cause,
    });
  }
}

function addressOf({ host, tls }: Pick<Listening, "host" | "tls">, port: number): string {
  const name = host === "0.0.0.0" || host === "::" ? "localhost" : host.includes(":") ? `[${host}]` : host;
  return `${tls ? "https" : "http"}://${name}:${port}`;
}

/** Prints another link for a server that runs. */
async function link(session: Session, flags: Flags): Promise<number> {
  const listening = listeningFrom(session, flags);
  const { store } = await session.openExisting();
  const { newSignInCode } = await import("../http/index.ts");
  const url = addressOf(listening, listening.port);
  const signIn = `${url}/#code=${await newSignInCode(store)}`;
  session.show({ url, signIn }, () => `${signIn}\n`);
  return 0;
}

/** Says whether the store answers, by asking it now and then. */
function openContact(store: Store): { isGood(): boolean; end(): void } {
  const over = new AbortController();
  let isGood = true;
  const look = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const answer = await Promise.race([
        store.control().then(
          () => true,
          () => false,
        ),
        realSystem.sleep(CONTACT_MS, over.signal).then(() => false),
      ]);
      if (over.signal.aborted) return;
      isGood = answer;
      await realSystem.sleep(CONTACT_MS, over.signal);
    }
  };
  void look();
  return { isGood: () => isGood && !over.signal.aborted, end: () => over.abort() };
}

async function up(session: Session, flags: Flags): Promise<number> {
  const listening = listeningFrom(session, flags);
  const within = textual(flags.within) ?? "25s";
  parseDuration(within, "within");
  const options = workerOptions(session, flags, "worker");
  const jobs = await definitions(session, flags);
  const redrive = await session.open({ jobs, defaults: defaultsOf(session, "worker"), makesFolder: true });
  const { httpHandler, newSignInCode, openAccess, openTokens } = await import("../http/index.ts");
  const { store } = redrive;
  const { log } = session;
  const hasTokens = listening.token !== null || (await openTokens({ store, log, actor: "up" }).list()).length > 0;
  if (!isLoopback(listening.host) && !hasTokens)
    throw new RedriveError(
      "config_refused",
      `host: expected a token for an address that other machines reach; got none; set REDRIVE_TOKEN or --token-file, or make one with redrive tokens add`,
    );
  let served: HttpServer | null = null;
  const access: Access = openAccess({
    store,
    system: realSystem,
    adminToken: listening.token,
    port: () => served?.port ?? listening.port,
    isSecure: listening.tls !== null || !isLoopback(listening.host),
  });
  const worker = flags.worker === false ? null : redrive.worker(options);
  const contact = openContact(store);
  const handler: HttpHandler = httpHandler(redrive, {
    auth: access,
    dashboard: textual(flags.dashboardDir) ?? true,
    hosts: listening.hosts,
    isReady: () => contact.isGood() && (worker === null || worker.isReady),
    log,
  });
  const { port, host, tls } = listening;
  served = await serveHttp(handler, { port, host, tls });
  const stop = async ({ within: given }: { readonly within?: Duration } = {}): Promise<void> => {
    contact.end();
    const closing = served?.close();
    const over = new AbortController();
    const left = realSystem.sleep(parseDuration(given ?? within, "within"), over.signal).then(() => served?.abort());
    await Promise.all([worker?.stop({ within: given ?? within }), closing]);
    over.abort();
    await left;
  };
  const work = async (): Promise<void> => {
    await worker?.start();
    const url = addressOf(listening, (served as HttpServer).port);
    const signIn = `${url}/#code=${await newSignInCode(store)}`;
    if (session.json) put(session.io.stdout, "json", `${JSON.stringify({ url, signIn })}\n`);
    else put(session.io.stdout, "text", `Redrive serves ${session.address.shown} on ${url}\nSign in: ${signIn}\n`);
    await new Promise(() => undefined);
  };
  try {
    const counts = worker?.counts ?? ({ leaked: 0 } as never);
    return (await supervise(session, redrive, { counts, stop: stop as RedriveWorker["stop"] }, { work, within })) ?? 0;
  } catch (error) {
    await stop({ within: 0 });
    throw error;
  }
}
