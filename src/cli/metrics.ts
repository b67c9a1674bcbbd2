// `redrive metrics`: the gauges of the fleet as text for Prometheus, once, or on a port.
import { RedriveError } from "../core/errors.ts";
import { resolveHealth } from "../core/health.ts";
import { resolveLimits } from "../core/service.ts";
import type { Metric } from "../metrics/metric.ts";
import { formatFor, MEDIA_TYPES, metricsText } from "../metrics/text.ts";
import { readStoreMetrics } from "../operate/store-metrics.ts";
import { realSystem } from "../system/real.ts";
import { put } from "../system/output.ts";
import { isLoopback, serveHealth } from "../worker/health-port.ts";
import { type Cli, examples, numeric, textual } from "./command.ts";
import { tokenFrom } from "./metrics-token.ts";
import type { Session } from "./session.ts";

const NOTES = `
Prints gauges that are read from the store, for the whole fleet: jobs by state,
due work, breakers, limits, dead letters, causes, workers, health. Counters and
durations of runs are those of a process: each worker serves its own on
\`worker --health-port N\`, under /metrics.

With --serve the store is read when a monitor asks, once in 10s at most. An
address that other machines reach needs --metrics-token-file; monitors then send
its text as a bearer token.`;

/** The store is read no more often. */
const READ_EVERY_MS = 10_000;

/** Registers `metrics`. */
export function register(cli: Cli): void {
  const command = cli.command
    .option("--serve <port>", "answer /metrics on this port until stopped; 0 lets the system choose")
    .option("--host <host>", "address of that port (default 127.0.0.1)")
    .option("--metrics-token-file <file>", "file with the secret that monitors send")
    .addHelpText("after", NOTES);
  examples(command, cli, ["metrics", "metrics --serve 9464"]);
  cli.act(command, async (session, _args, flags) => {
    const port = numeric(flags.serve);
    const host = textual(flags.host) ?? "127.0.0.1";
    const metricsToken = tokenFrom(session, textual(flags.metricsTokenFile));
    if (port !== undefined && metricsToken === undefined && !isLoopback(host))
      throw new RedriveError(
        "config_refused",
        `host: expected a loopback address, or --metrics-token-file with a secret; got ${host} without one; add it`,
      );
    const { store } = await session.openExisting();
    const { services, tenants } = session.config;
    const limits = resolveLimits({ services, tenants });
    const read = (): Promise<Metric[]> =>
      readStoreMetrics({ store, limits, health: resolveHealth(session.config.health) });
    if (port === undefined) {
      const families = await read();
      if (session.json) session.show({ families }, () => "");
      else put(session.io.stdout, "text", metricsText(families));
      return 0;
    }
    const shared = sparingly(read);
    const served = await serveHealth({
      port,
      host,
      metricsToken,
      isMain: true,
      log: session.log,
      metrics: async (accept) => {
        const format = formatFor(accept);
        return { mediaType: MEDIA_TYPES[format], text: metricsText(await shared(), format) };
      },
    });
    session.say(`Metrics on http://${host.includes(":") ? `[${host}]` : host}:${served.port}/metrics`);
    const code = await stopped(session);
    await served.close();
    return code;
  });
}

/** Reads once in ten seconds at most; monitors that ask meanwhile get the same answer. */
function sparingly<T>(read: () => Promise<T>): () => Promise<T> {
  let last: { readonly answer: Promise<T>; readonly atMs: number } | null = null;
  return () => {
    const nowMs = realSystem.monotonic();
    if (last && nowMs - last.atMs < READ_EVERY_MS) return last.answer;
    const answer = read();
    last = { answer, atMs: nowMs };
    // A failure is not kept: the next monitor tries again.
    answer.catch(() => (last = null));
    return answer;
  };
}

/** Resolves with the exit code of the first signal. */
function stopped({ io }: Session): Promise<number> {
  return new Promise((done) => {
    const cut = io.onSignal((signal) => {
      cut();
      done(signal === "SIGINT" ? 130 : 143);
    });
  });
}
