// Inputs for the two ways into a store on Postgres, the library and the SQL function, and what each answers. Good and bad
// values of every option are mixed, so that it shows too which fault each names first.
import { isRedriveError } from "../../src/core/errors.ts";
import { UNIQUE_MODES } from "../../src/core/new-job.ts";
import type { EnqueueOptions } from "../../src/index.ts";
import type { Dice } from "../simulation/dice.ts";
import type { PostgresQueue } from "./postgres-queue.ts";

/** One call of either way in. */
export interface DoorCall {
  readonly type: string;
  readonly text: string;
  readonly id: string;
  readonly options: Omit<EnqueueOptions, "tx">;
}

/** What a way in answers; texts of errors without what only one of them can say. */
export type DoorAnswer =
  | { readonly id: string; readonly duplicate: boolean; readonly replaced: boolean; readonly state: string | null }
  | { readonly code: string; readonly says: string };

const HOUR = 3_600_000;
const EVIL = ["'; drop table job; --", "$enqueue$", "x') or ('1'='1", "\\'; --", "../../x", "%s", "{}", '"', "a\nb"];
const LONG = "x".repeat(300);
const nested = (depth: number, open = "[", close = "]"): string => `${open.repeat(depth)}${close.repeat(depth)}`;
const objects = (depth: number): string => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;

const GOOD_PAYLOADS = [
  '{"a":1}',
  '{"b":2}',
  ' {"a" : 1.0e+5} ',
  '"ü😀"',
  "null",
  '{"n":9007199254740993,"n":1}',
  '"\\ud800"',
  '"\\u0000"',
  nested(64),
  objects(64),
  `{"text":"${"[".repeat(200)}","quoted":"\\"[[\\\\","more":[${"[],".repeat(80)}{}]}`,
  `{"brackets":"${'\\"[{'.repeat(70)}"}`,
];
const BAD_PAYLOADS = [
  "{",
  "",
  "nope",
  '{"a":}',
  "'x'",
  "01",
  "[1,]",
  '"\u0001"',
  "\ufeff{}",
  "\u00a01",
  nested(65),
  objects(65),
  nested(70, "[[],", ",{}]"),
  `{"deep":${nested(64)}}`,
];

/** Draws the calls of a seed; every value is good with a high probability, so that most calls have at most one fault. */
export function drawCall(dice: Dice, number: number): DoorCall {
  const bad = dice.chance(0.3) ? dice.between(0, 12) : -1;
  const some = <T>(at: number, good: readonly T[], wrong: readonly T[], share = 0.3): T | undefined => {
    if (bad === at || (bad >= 0 && dice.chance(0.03))) return dice.pick(wrong);
    return dice.chance(share) ? dice.pick(good) : undefined;
  };
  const key = some("key".length, ["k1", "k2", "k 3", "ключ", `${"x".repeat(255)}`], ["", LONG, "ж".repeat(128)], 0.6);
  const unique = some(4, UNIQUE_MODES, ["KEY", "replcae", "", ...EVIL] as never[], 0.8);
  const options = {
    key,
    unique: key === undefined && bad !== 4 ? undefined : unique,
    priority: some(5, [0, 3, 9], [-1, 10, 2_147_483_647], 0.2),
    delay: some(6, [0, HOUR, 5 * HOUR], [-1_000, 88_000 * HOUR, Number.MAX_SAFE_INTEGER / 1_000], 0.2),
    runAt: some(7, [4_102_444_800_000], [-1_000, Number.POSITIVE_INFINITY], 0.05),
    tenant: some(8, ["acme", "a c", ...EVIL], ["", LONG], 0.2),
    group: some(9, ["g1", "g2", "__proto__"], ["", LONG], 0.2),
    queue: some(10, ["default", "mail.de"], ["", "a b", "x".repeat(129), "é", ...EVIL], 0.2),
    service: some(11, ["smtp", "a:b"], ["", "a b", ...EVIL], 0.2),
    maxAttempts: some(12, [1, 5, 10_000], [0, -5, 10_001], 0.1),
    deadline: some(2, [1, HOUR, "2h"], [0, -HOUR, 88_000 * HOUR], 0.1),
  };
  const said = Object.entries(options).filter(([, value]) => value !== undefined);
  return {
    type: some(1, ["a", "b"], ["", "a b", "x".repeat(129), "a\n", "ä", ...EVIL], 1) ?? "a",
    text: bad === 0 ? dice.pick(BAD_PAYLOADS) : dice.pick(dice.chance(0.8) ? GOOD_PAYLOADS.slice(0, 2) : GOOD_PAYLOADS),
    id: some(0, [`j${number}`, `j${dice.between(0, number)}`], ["", "a b", "x".repeat(65), ...EVIL]) ?? `n${number}`,
    options: Object.fromEntries(said),
  };
}

/** Enqueues through the library. */
export async function byLibrary({ redrive }: PostgresQueue, call: DoorCall): Promise<DoorAnswer> {
  const { type, text, id, options } = call;
  const [answer] = await redrive.enqueueEach([{ job: type, text, id, options }]);
  if (answer === undefined) throw new Error("no answer");
  if (isRedriveError(answer)) return { code: answer.code, says: plain(answer.message) };
  const { id: found, duplicate, replaced, state } = answer;
  return { id: found, duplicate, replaced, state };
}

const SQL = `select id, duplicate, replaced, state from @.enqueue($1, $2, key => $3, unique_mode => $4, priority => $5,
  delay => $6, run_at => $7, tenant => $8, group_key => $9, queue => $10, service => $11, max_attempts => $12,
  deadline => $13, id => $14)`;

const span = (value: unknown): unknown => (typeof value === "number" ? `${value} milliseconds` : value);
const moment = (value: unknown): unknown =>
  typeof value !== "number" ? value : Number.isFinite(value) ? new Date(value).toISOString() : "infinity";

/** Enqueues through the SQL function. */
export async function bySql({ pool, schema }: PostgresQueue, call: DoorCall): Promise<DoorAnswer> {
  const { type, text, id } = call;
  const { key, unique, priority, delay, runAt, tenant, group, queue, service, maxAttempts, deadline } = call.options;
  const own = [key, unique, priority, span(delay), moment(runAt), tenant, group, queue, service, maxAttempts];
  const values = [type, text, ...own, span(deadline), id].map((value) => value ?? null);
  try {
    const { rows } = await pool.query<DoorAnswer & object>(SQL.replace("@", schema), values);
    return rows[0] as DoorAnswer;
  } catch (error) {
    const { code = "", detail, message } = error as { code?: string; detail?: string; message: string };
    // The text is no JSON: the server says so before the function is called.
    if (code === "22P02" && message.includes("type json")) return { code: "invalid_payload", says: plain("payload:") };
    if (detail === undefined || !detail.startsWith("{")) throw error;
    return { code: (JSON.parse(detail) as { code: string }).code, says: plain(message) };
  }
}

/** The start of texts that name other forms or other remedies; of all others the whole text. */
function plain(message: string): string {
  const text = message
    .replace(/^job\.maxAttempts:/, "max_attempts:")
    .replace(/^job\.deadline:/, "deadline:")
    .replace(/^group:/, "group_key:")
    .replace(/^runAt:/, "run_at:")
    .replace(/^unique:/, "unique_mode:")
    .replace("delay or runAt", "delay or run_at")
    .replace(`got "both"`, "got both")
    .replace(`unique_mode => 'replace'`, 'unique: "replace"');
  const short = /^(?:delay|deadline|run_at):|^payload: expected JSON/.exec(text);
  if (short) return short[0].startsWith("payload") ? "payload:" : short[0];
  return text.startsWith("unique_mode: expected one of") ? text.slice(0, text.lastIndexOf("; got")) : text;
}

/** All that enqueues have written, without what only the clock decided; times in whole hours. */
export function written({ sql }: PostgresQueue): Promise<Record<string, unknown>[]> {
  const hours = (column: string): string => `round((${column})::numeric / ${HOUR})`;
  return sql(`select j.id, j.key, j.payload, j.state, j.version, j.limited, j.trace, j.max_attempts, j.max_crashes,
      j.deadline_ms, j.stuck_ms, j.stuck_retry_ms, j.stuck_limit, j.keep_ms, j.keep_dead_ms, j.generation, j.lane % 4 as kind,
      j.lane / (562949953421312) as rank, case when j.due_at > 4000000000000 then j.due_at else ${hours("j.due_at - j.created_at")} end as due,
      l.type, l.queue, l.service, l.tenant, l.group_key, l.group_concurrency, l.priority,
      exists (select from @.waiting w where w.lane = j.lane and w.run_at = j.run_at and w.seq = j.seq) as waits,
      (select array_agg(v.n || v.payload order by v.n) from @.payload_version v where v.job_seq = j.seq) as payloads,
      (select row(k.digest, k.gone, k.type, k.key)::text from @.job_key k where k.job_id = j.id) as holds
    from @.job j left join @.lane l on l.base = j.lane - j.lane % 4 order by j.seq`);
}
