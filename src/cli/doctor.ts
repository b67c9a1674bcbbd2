// `redrive doctor`: looks at everything that has to be right and says what to do where it is not.
import { existsSync } from "node:fs";
import { isRedriveError } from "../core/errors.ts";
import { type Cli, examples } from "./command.ts";
import { fileFindings, type Finding, machineFindings } from "./doctor-machine.ts";
import { EXIT } from "./exit.ts";
import { queueFindings } from "./doctor-queue.ts";
import { stateStyle } from "./paint.ts";
import { masked, safeLine, oneLine } from "./safe-text.ts";
import type { Session } from "./session.ts";

/** Registers `doctor`. */
export function registerDoctor(cli: Cli): void {
  const command = cli.program
    .command("doctor")
    .summary("check machine, store and work, and say what to do")
    .description(
      "Check machine, store and work, and say what to do. Exit code 0: fine, or warnings only; 1: problems; 3: no store.",
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
  const { path } = session.address;
  const findings = machineFindings(session);
  if (!existsSync(path)) {
    const remedy = "name it with --store sqlite:PATH or REDRIVE_STORE, or make it with `migrate`";
    findings.push({ check: "store", level: "problem", message: `there is no file ${path}`, remedy });
    return { findings, storeFailed: true };
  }
  findings.push(...fileFindings(path));
  try {
    const redrive = await session.open();
    findings.push(...(await queueFindings(redrive.store)));
    return { findings, storeFailed: false };
  } catch (error) {
    if (!isRedriveError(error)) throw error;
    findings.push({ check: "store", level: "problem", message: oneLine(error.message), remedy: null });
    return { findings, storeFailed: true };
  }
}

function findingText({ check, level, message, remedy }: Finding, { paint }: Session): string {
  const style = stateStyle(level);
  const word = level.padEnd(8);
  const line = `${style ? paint(style, word) : word} ${check.padEnd(10)} ${masked(safeLine(message))}\n`;
  return remedy === null ? line : `${line}${" ".repeat(20)}→ ${safeLine(remedy)}\n`;
}
