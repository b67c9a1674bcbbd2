// `redrive dlq export`: dead letters for other tools, streamed; a reader that has seen enough ends it.
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

const CSV_REMEDY = "leave --json out and stdout is the CSV, or add --output FILE";

/** Registers `dlq export`. */
export function registerExport(cli: Cli, dlq: Command): void {
  const command = letterFilterFlags(
    dlq.command("export").description("write dead letters as NDJSON or CSV, oldest first; with --json as one document"),
  )
    .option("--format <format>", EXPORT_FORMATS.join(" or "), "ndjson")
    .option("--output <file>", "a new file, readable by you alone (default stdout)")
    .option("--reveal", "show fields that sound like secrets as they are (default masked)");
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

/** The letters as the one document that `--json` promises, written as they come. */
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

/** Writes a new file; one that is there is left alone, because it may be somebody's only copy. */
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

/** Also a link that leads nowhere has the name. */
function refuseTaken(path: string): void {
  try {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return;
  } catch {
    // What we may not even look at is told when it is opened.
    return;
  }
  throw invalid("output", "a new file", path, "it is there already; name another, or remove it");
}
