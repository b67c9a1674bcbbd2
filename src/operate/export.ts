// Dead letters as text for other tools: NDJSON with all fields, or CSV with those that fit into a table.
import { csvCell } from "../core/csv.ts";
import { nothingHeld } from "../core/holding.ts";
import type { AttemptRecord, DeadLetter } from "../core/job.ts";
import { invalid } from "../core/options.ts";
import { redactJson, redactText } from "../core/redact.ts";
import type { Store } from "../store/store.ts";
import { letterForm } from "./job-forms.ts";
import { isoTime, jsonText } from "./json-form.ts";

/** The formats of an export. */
export const EXPORT_FORMATS = ["ndjson", "csv"] as const;
/** One of `EXPORT_FORMATS`. */
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

const COLUMNS = [
  "job_id",
  "job_type",
  "reason",
  "failure_type",
  "error_name",
  "last_error",
  "attempts",
  "max_attempts",
  "crashes",
  "generation",
  "service",
  "tenant",
  "key",
  "fingerprint",
  "created_at",
  "redriven_at",
  "input_data",
  "release",
] as const;

/** Options of an export. */
export interface ExportOptions {
  /** True does not mask fields that look like secrets; default false. */
  readonly reveal?: boolean;
}

/** The export, a line at a time, each with its line break. */
export async function* exportLetters(
  format: ExportFormat,
  letters: AsyncIterable<DeadLetter>,
  store: Store,
  { reveal = false }: ExportOptions = {},
): AsyncGenerator<string> {
  if (!EXPORT_FORMATS.includes(format))
    throw invalid("format", EXPORT_FORMATS.join(" or "), format, "use one of these");
  if (format === "csv") yield csvLine(COLUMNS);
  for await (const stored of letters) {
    const letter = reveal ? stored : withoutSecrets(stored);
    if (format === "csv") yield csvLine(csvRow(letter));
    else yield `${jsonText(letterForm(letter, await historyOf(letter, store, reveal), nothingHeld(letter.diedAt)))}\n`;
  }
}

async function historyOf({ job }: DeadLetter, store: Store, reveal: boolean): Promise<AttemptRecord[]> {
  const history = await store.history(job.id);
  if (reveal) return history;
  return history.map((run) => ({ ...run, failure: { ...run.failure, message: redactText(run.failure.message) } }));
}

function withoutSecrets({ job, failure, ...letter }: DeadLetter): DeadLetter {
  const text = (json: string | null): string | null => json && redactJson(json);
  const message = redactText(failure.message);
  const shown = { ...failure, message, stack: failure.stack && redactText(failure.stack) };
  return {
    ...letter,
    failure: shown,
    job: { ...job, payload: redactJson(job.payload), progress: text(job.progress), result: text(job.result) },
  };
}

function csvRow({ job, failure, ...letter }: DeadLetter): readonly (string | number | null)[] {
  const { id, type, maxAttempts, service, tenant, key, payload } = job;
  const { reason, attempts, crashes, generation } = letter;
  const what = [failure.class, failure.name, failure.message];
  const times = [isoTime(letter.diedAt), isoTime(letter.redrivenAt)];
  const whose = [service, tenant, key, failure.fingerprint];
  return [
    id,
    type,
    reason,
    ...what,
    attempts,
    maxAttempts,
    crashes,
    generation,
    ...whose,
    ...times,
    payload,
    letter.release,
  ];
}

/** One line as in RFC 4180. A text that a spreadsheet would take for a formula gets a leading apostrophe. */
function csvLine(values: readonly (string | number | null)[]): string {
  const cell = (value: string | number | null): string => {
    const text = value === null ? "" : String(value);
    const safe = typeof value === "string" && /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text;
    return csvCell(safe);
  };
  return `${values.map(cell).join(",")}\r\n`;
}
