// `redrive dlq export`: streams dead letters to other tools; a reader that closes the pipe ends the export.
import { lstatSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { invalid } from "../core/options.ts";
import { EXPORT_FORMATS } from "../operate/export.ts";
import { put } from "../system/output.ts";
import { type Cli, examples, textual } from "./command.ts";
import { letterFilter, letterFilterFlags } from "./job-flags.ts";
import type { Session } from "./session.ts";
import { streamDocument } from "./streamed-document.ts";
import { openWhole } from "./whole-file.ts";
import { counted } from "./format.ts";

const CSV_REMEDY = "leave --json out to get the CSV on stdout, or add --output FILE";

/** Registers `dlq export`. */
export function registerExport(cli: Cli, dlq: Command): void {
  const command = letterFilterFlags(
    dlq.command("export").description("write dead letters as NDJSON or CSV, oldest first; with --json as one document"),
  )
    .option("--format <format>", EXPORT_FORMATS.join(" or "), "ndjson")
    .option("--output <file>", "a new file, readable by you alone (default stdout)")
    .option("--reveal", "do not mask fields that look like secrets");
  examples(command, cli, ["dlq export > dead.ndjson", "dlq export --format csv --output dead.csv --older-than 7d"]);
  cli.act(command, async (session, _args, flags) => {
    const format = EXPORT_FORMATS.find((known) => known === flags.format);
    if (format === undefined) throw invalid("format", EXPORT_FORMATS.join(" or "), flags.format, "use one of these");
    const output = textual(flags.output);
    if (output === undefined && session.json && format === "csv")
      throw invalid("format", "ndjson, because --json answers with one JSON document", format, CSV_REMEDY);
    const redrive = await session.openExisting();
    const filter = await letterFilter(flags, async () => redrive.store);
    const lines = redrive.deadLetters.export(format, filter, { reveal: flags.reveal === true && !session.redact });
    if (output === undefined) return session.json ? toDocument(session, lines) : toStdout(session, lines);
    const file = resolve(session.io.cwd, output);
    const bytes = await toFile(file, lines);
    session.answer({ file, format, bytes }, () => `${file}: ${counted(bytes, "byte")}\n`);
  });
}

/** Writes the letters as the one document that `--json` promises, in a stream. */
async function toDocument({ io }: Session, lines: AsyncIterable<string>): Promise<void> {
  const document = streamDocument(io, "items");
  try {
    for await (const line of lines) {
      if (io.stdout.isClosed) return;
      if (!document.add(line.trimEnd())) await io.stdout.drained?.();
    }
  } catch (error) {
    throw document.fail(error, { next: null });
  }
  document.end({ next: null });
}

async function toStdout({ io }: Session, lines: AsyncIterable<string>): Promise<void> {
  for await (const line of lines) {
    if (io.stdout.isClosed) return;
    if (!put(io.stdout, "data", line)) await io.stdout.drained?.();
  }
}

/** Writes a new file. An existing file is left alone, because it may be the user's only copy. */
async function toFile(path: string, lines: AsyncIterable<string>): Promise<number> {
  refuseTaken(path);
  const file = openWhole(path, "make room, or name another file, and call again");
  try {
    let bytes = 0;
    for await (const line of lines) {
      await file.write(line);
      bytes += Buffer.byteLength(line);
    }
    refuseTaken(path);
    await file.end();
    return bytes;
  } catch (error) {
    file.abandon();
    throw error;
  }
}

/** Refuses a name that is taken, also by a link that leads nowhere. */
function refuseTaken(path: string): void {
  try {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return;
  } catch {
    // A path that we may not read is reported when it is opened.
    return;
  }
  throw invalid("output", "a new file", path, "it exists already; name another, or remove it");
}
