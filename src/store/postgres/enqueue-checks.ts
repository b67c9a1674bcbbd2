// The checks of the SQL function `enqueue`. Bounds, forms and texts come from core: a text is what core says of a bad value
// that stands for any other, with an expression in the place of that value.
import { formatDuration } from "../../core/duration.ts";
import { type ErrorCode, isRedriveError } from "../../core/errors.ts";
import { LATEST_INSTANT, TERMS } from "../../core/job.ts";
import {
  checkName,
  checkNewJob,
  checkOneOf,
  checkPriority,
  checkText,
  conflictText,
  ID,
  JOB_BOUNDS,
  NAME,
  type NewJob,
  tooLarge,
  UNIQUE_MODES,
} from "../../core/new-job.ts";
import { invalid } from "../../core/options.ts";
import { checkPayloadText } from "../../core/payload.ts";
import { resolvePolicy } from "../../core/policy.ts";

/** The codes of the library as SQLSTATE; the detail of an error has the code itself. */
export const SQLSTATES = {
  invalid_argument: "22023",
  invalid_payload: "22032",
  payload_too_large: "54000",
  conflict: "23505",
  store_unavailable: "40001",
} as const satisfies Partial<Record<ErrorCode, string>>;

/** Stands for what a caller sends. */
const SENT = "<sent>";
const SENT_NUMBER = 90_210_011;
/** How the library shows it. */
const SHOWN = JSON.stringify(SENT);

/** A text as a literal. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** What core says of a value that it refuses. */
function refusal(check: () => unknown): string {
  try {
    check();
  } catch (error) {
    if (isRedriveError(error)) return error.message;
    throw error;
  }
  throw new Error("core no longer refuses the value");
}

/** A text as an expression, with expressions in these places of it, which follow one another. */
function saying(text: string, ...places: readonly (readonly [standsHere: string, value: string])[]): string {
  let rest = text;
  const parts = places.flatMap(([standsHere, value]) => {
    const at = rest.indexOf(standsHere);
    if (at < 0) throw new Error(`there is no ${standsHere} in: ${text}`);
    const before = rest.slice(0, at);
    rest = rest.slice(at + standsHere.length);
    return [quoted(before), value];
  });
  return [...parts, quoted(rest)].join(" || ");
}

/** Statements that raise an error with a code of the library, and more facts for programs. */
export const raising = (code: keyof typeof SQLSTATES, message: string, details = ""): string =>
  `raise exception using errcode = '${SQLSTATES[code]}', message = ${message},
      detail = json_build_object('code', '${code}'${details})::text`;

/** A value as errors of the library show it. */
const shownText = (value: string): string =>
  `coalesce(to_json(left(${value}, 60) || case when length(${value}) > 60 then '…' else '' end)::text, 'null')`;

/** Milliseconds of an interval or a time, rounded up: a job is due no sooner than its producer said. */
export const milliseconds = (value: string): string => `ceil(extract(epoch from ${value}) * 1000)`;

/** Raises that the key is taken by another payload. */
export function raisingConflict(holder: string): string {
  const text = saying(
    conflictText({ type: "<type>", key: "<key>" }, "<id>").replace('unique: "replace"', "unique_mode => 'replace'"),
    [JSON.stringify("<key>"), "to_json(enqueue.key)::text"],
    ["<type>", "enqueue.type"],
    ["<id>", holder],
  );
  return raising("conflict", text, `, 'id', ${holder}, 'type', enqueue.type, 'key', enqueue.key`);
}

const nameCase = (field: string): string =>
  `when enqueue.${field} !~ ${quoted(NAME.source)} then ${saying(
    refusal(() => checkName(field, SENT)),
    [SHOWN, shownText(`enqueue.${field}`)],
  )}`;

const textCase = (field: string): string => {
  // Not a text that core takes, so that it says something about it.
  const bad = `${SENT}\0`;
  return `when octet_length(enqueue.${field}) not between 1 and ${JOB_BOUNDS.keyBytes} then ${saying(
    refusal(() => checkText(field, bad)),
    [JSON.stringify(bad), shownText(`enqueue.${field}`)],
  )}`;
};

const spanCase = (field: string, least: number): string => {
  const expected = `an interval from ${formatDuration(least)} to ${formatDuration(JOB_BOUNDS.delayMs)}`;
  return `when ${milliseconds(`enqueue.${field}`)} not between ${least} and ${JOB_BOUNDS.delayMs} then ${saying(
    invalid(field, expected, SENT, "write one of these").message,
    [SHOWN, shownText(`enqueue.${field}::text`)],
  )}`;
};

/** The first option that is wrong, in the order in which the library looks; null where none is. */
function fault(): string {
  const { maxAttempts, deadlineMs } = TERMS;
  const modes = UNIQUE_MODES.map(quoted).join(", ");
  const attempts = refusal(() => resolvePolicy({ job: { maxAttempts: SENT as never } }));
  const id = refusal(() => checkNewJob({ id: SENT } as NewJob));
  const moment = invalid("run_at", "a time from 1970 to the year 275760", SENT, "use one").message;
  return `case
    when enqueue.max_attempts not between ${maxAttempts.least} and ${maxAttempts.most}
      then ${saying(attempts.replace("job.maxAttempts", "max_attempts"), [SHOWN, "enqueue.max_attempts::text"])}
    ${spanCase("deadline", deadlineMs.least)}
    when enqueue.delay is not null and enqueue.run_at is not null
      then ${quoted(invalid("enqueue", "delay or run_at", "both", "give one of them").message)}
    when asked.mode <> all (array[${modes}]) then ${saying(
      refusal(() => checkOneOf("unique_mode", SENT, UNIQUE_MODES)),
      [SHOWN, shownText("asked.mode")],
    )}
    when enqueue.key is null and asked.mode <> '${UNIQUE_MODES[0]}'
      then ${saying(invalid("unique_mode", "a key", SENT, "set a key too").message, [SHOWN, shownText("asked.mode")])}
    ${spanCase("delay", 0)}
    when ${milliseconds("enqueue.run_at")} not between 0 and ${LATEST_INSTANT}
      then ${saying(moment, [SHOWN, shownText("enqueue.run_at::text")])}
    when enqueue.id !~ ${quoted(ID.source)} then ${saying(id, [SHOWN, shownText("enqueue.id")])}
    when enqueue.type is null then ${quoted(refusal(() => checkName("type", null)))}
    ${["type", "queue", "service"].map(nameCase).join("\n    ")}
    ${["tenant", "group_key", "key"].map(textCase).join("\n    ")}
    when enqueue.priority not between 0 and 9
      then ${saying(
        refusal(() => checkPriority(SENT)),
        [SHOWN, "enqueue.priority::text"],
      )}
  end`;
}

/** A string of JSON with its escapes; with backslashes doubled, so that no setting of the session changes them. */
const JSON_STRING = String.raw`E'"(\\\\.|[^"\\\\])*"'`;

/** Refuses what is wrong: the payload first, as the library does. Fills `brackets` and `fault`. */
export function checks(): string {
  const { payloadBytes, payloadDepth } = JOB_BOUNDS;
  const missing = invalid("payload", "JSON", null, "send 'null' for the null of JSON").message;
  const long = saying(tooLarge("payload", payloadBytes, SENT_NUMBER).message, [
    `${SENT_NUMBER}`,
    "octet_length(asked.body)",
  ]);
  const deep = refusal(() => checkPayloadText("[".repeat(payloadDepth + 1) + "]".repeat(payloadDepth + 1)));
  return `if asked.body is null then
    ${raising("invalid_payload", quoted(missing))};
  elsif octet_length(asked.body) > ${payloadBytes} then
    ${raising("payload_too_large", long)};
  elsif octet_length(asked.body) > ${2 * payloadDepth} and length(asked.body) - length(translate(asked.body, '[{', '')) > ${payloadDepth} then
    -- The brackets outside of strings. Every turn takes out the innermost pairs, which are one level.
    brackets := regexp_replace(asked.body, ${JSON_STRING}, '', 'g');
    brackets := translate(regexp_replace(brackets, '[^][{}]+', '', 'g'), '{}', '[]');
    for level in 1..${payloadDepth} loop
      exit when brackets = '';
      brackets := replace(brackets, '[]', '');
    end loop;
    if brackets <> '' then
      ${raising("payload_too_large", quoted(deep))};
    end if;
  end if;
  fault := ${fault()};
  if fault is not null then
    ${raising("invalid_argument", "fault")};
  end if;`;
}
