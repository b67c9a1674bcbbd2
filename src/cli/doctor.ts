// `redrive doctor`: checks everything that must be right, and says what to do where it is not.
import { isRedriveError } from "../core/errors.ts";
import { type Cli, examples } from "./command.ts";
import type { Config } from "../config/find-config.ts";
import { type Finding, finding } from "../store/inspection.ts";
import { doubtsAbout } from "../system/trusted-file.ts";
import { EXIT } from "./exit.ts";
import { type Defined, queueFindings } from "./doctor-queue.ts";
import { stateStyle } from "./paint.ts";
import { masked, safeLine, oneLine } from "../core/safe-text.ts";
import type { Session } from "./session.ts";
import { definitions, jobFileNames } from "./job-files.ts";

/** Registers `doctor`. */
export function register(cli: Cli): void {
  const command = cli.command.description(
    "Check machine, store and work, with a remedy for each problem. Exit code 0: fine, or warnings only; 1: problems; 3: no store.",
  );
  examples(command, cli, ["doctor", "doctor --json"]);
  cli.act(command, async (session) => {
    const { findings, storeFailed } = await examine(session);
    session.show({ ok: findings.every(({ level }) => level !== "problem"), checks: findings }, () =>
      findings.map((finding) => findingText(finding, session)).join(""),
    );
    if (storeFailed) return EXIT.store;
    return findings.some(({ level }) => level === "problem") ? EXIT.failed : EXIT.ok;
  });
}

async function examine(session: Session): Promise<{ findings: Finding[]; storeFailed: boolean }> {
  const { config, address } = session;
  const inspection = await address.inspect();
  const findings = [nodeFinding(), ...(await inspection.machineFindings()), configFinding(config)];
  findings.push(...(await traceFindings(config)));
  const found = await inspection.placeFindings();
  findings.push(...found);
  if (found.some(({ check, level }) => check === "store" && level === "problem"))
    return { findings, storeFailed: true };
  findings.push(...ownerFindings([config.file, ...config.jobs, address.file].filter((each) => each !== null)));
  const defined = await definedTypes(session, findings);
  try {
    const redrive = await session.openExisting();
    findings.push(...(await inspection.storeFindings(redrive.store)));
    findings.push(...(await queueFindings(redrive.store, defined)));
    return { findings, storeFailed: false };
  } catch (error) {
    if (!isRedriveError(error)) throw error;
    const { message } = (await inspection.explained(error)) as Error;
    findings.push({ check: "store", level: "problem", message: oneLine(message), remedy: null });
    return { findings, storeFailed: true };
  }
}

/** The types that the config file's jobs define; null where it names none, or they cannot be loaded. */
async function definedTypes(session: Session, findings: Finding[]): Promise<Defined | null> {
  if (session.config.jobs.length === 0) return null;
  try {
    const types = (await definitions(session, {})).map(({ type }) => type);
    return { types, files: jobFileNames(session, {}) };
  } catch (error) {
    if (!isRedriveError(error)) throw error;
    const remedy = "correct the file, or `jobs` in the config file";
    findings.push({ check: "jobs", level: "problem", message: oneLine(error.message), remedy });
    return null;
  }
}

function findingText({ check, level, message, remedy }: Finding, { paint }: Session): string {
  const style = stateStyle(level);
  const word = level.padEnd(8);
  const line = `${style ? paint(style, word) : word} ${check.padEnd(10)} ${masked(safeLine(message))}\n`;
  return remedy === null ? line : `${line}${" ".repeat(20)}→ ${safeLine(remedy)}\n`;
}

/** Checks the version of Node. */
function nodeFinding(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const isNew = major > 20 || (major === 20 && minor >= 19);
  return finding("node", isNew ? "ok" : "problem", process.versions.node, isNew ? null : "install 20.19 or newer");
}

/** Names the config file. */
function configFinding({ file }: Config): Finding {
  return finding("config", "ok", file ?? "none");
}

/** Says what is missing for the traces that the config file asks for. */
async function traceFindings({ traces }: Config): Promise<Finding[]> {
  if (traces === false) return [];
  const { API_RANGE, findOpenTelemetry, hasSdk } = await import("../system/open-telemetry.ts");
  const { why, version } = await findOpenTelemetry();
  if (why !== null) return [finding("traces", "warning", why, `npm install @opentelemetry/api@${API_RANGE}`)];
  const found = `@opentelemetry/api ${version}`;
  if (hasSdk()) return [finding("traces", "ok", `${found}, and an SDK is registered`)];
  const remedy = "load your SDK first: NODE_OPTIONS='--import ./tracing.mjs' redrive doctor";
  return [finding("traces", "warning", `${found}, but no SDK is registered in this process: no span is made`, remedy)];
}

/** Warns about files and folders that another user, or a group, could change. */
function ownerFindings(files: readonly string[]): Finding[] {
  return doubtsAbout(files).map((doubt) =>
    finding("owners", "warning", doubt, "to keep others from changing what runs here, chown it or chmod g-w"),
  );
}
