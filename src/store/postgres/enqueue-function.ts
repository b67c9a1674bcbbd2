// The function `enqueue` in the schema of the store: the way in for every language and for triggers, inside the
// transaction of its caller. Its statements are those of the store, its checks are those of core, and what happens to a
// taken key is a table that core fills while the function is made. Like the views, it is no part of a migration: the
// newest one ends with its present form. Its parameters keep their names and their order, because a function with others
// would be a second one beside it, without the rights that were granted on this one.
import { STATES, TERM_NAMES, type Terms } from "../../core/job.ts";
import { firstLane } from "../../core/lane.ts";
import { meetHolder, type NewJob, UNIQUE_MODES } from "../../core/new-job.ts";
import { resolvePolicy } from "../../core/policy.ts";
import { TERM_COLUMNS } from "../columns.ts";
import { NOW } from "./context.ts";
import { addCounts, FLOW_TICKS, tickColumns } from "../tick-tables.ts";
import { changedOften, INSERTED, insertInto, KEPT, outOfUse, statesStatement, TURNS } from "./enqueue.ts";
import { checks, milliseconds, quoted, raising, raisingConflict } from "./enqueue-checks.ts";
import { keyStatements } from "./keys.ts";
import { inUse, laneStatements } from "./lane-numbers.ts";
import { openWakerWithin, wakeNames } from "./wake.ts";

/** What the function takes and, last, what it answers. `unique` and `group` are words of SQL itself. */
const PARAMETERS = [
  "type text",
  "payload json",
  "key text default null",
  `unique_mode text default '${UNIQUE_MODES[0]}'`,
  "priority int default 0",
  "delay interval default null",
  "run_at timestamptz default null",
  "tenant text default null",
  "group_key text default null",
  "queue text default 'default'",
  "service text default null",
  "max_attempts int default null",
  "deadline interval default null",
  "inout id text default null",
  "out duplicate boolean",
  "out replaced boolean",
  "out state text",
];

/** A statement of the store with expressions for its parameters. */
function bound(text: string, ...values: readonly string[]): string {
  return text.replaceAll(/\$(\d+)/g, (_whole, n: string) => {
    const value = values[Number(n) - 1];
    if (value === undefined) throw new Error(`there is no value for $${n} of: ${text}`);
    return `(${value})`;
  });
}

const one = (value: string): string => `array[${value}]`;

/** An id of the form that the library makes, ascending: milliseconds, their thousandths, chance. */
const NEW_ID = `left(asked.word, 8) || '-' || right(asked.word, 4) || '-7' || lpad(to_hex(asked.seq % 1000 * 4), 3, '0')
      || substr(gen_random_uuid()::text, 19)`;

/** Every answer of core about a taken key; `create` where the table has none. */
function meeting(): string {
  const met: Record<string, string> = {};
  for (const unique of UNIQUE_MODES)
    for (const hasPayload of [true, false])
      for (const hasId of [true, false])
        for (const state of [...STATES, null]) {
          const holder = { id: hasId ? "a" : "b", digest: hasPayload ? "a" : "b", state };
          const answer = meetHolder({ id: "a", digest: "a", unique } as NewJob, holder);
          if (answer !== "create") met[`${unique} ${hasPayload} ${hasId} ${state ?? "gone"}`] = answer;
        }
  const word = `asked.mode || ' ' || (holder_digest = asked.digest)::text || ' ' || (holder = enqueue.id)::text || ' ' || coalesce(enqueue.state, 'gone')`;
  return `coalesce(${quoted(JSON.stringify(met))}::jsonb ->> (${word}), 'create')`;
}

/** The columns of a lane, as expressions. */
const BELONGING: Readonly<Record<string, string>> = {
  type: "enqueue.type",
  queue: "asked.in_queue",
  service: "enqueue.service",
  tenant: "enqueue.tenant",
  group_key: "enqueue.group_key",
  group_concurrency: "case when enqueue.group_key is not null then 1 end",
  priority: "asked.rank",
};

/** Those of a new job, as a producer writes them who knows only the name of the type. */
function columns(): Readonly<Record<string, string>> {
  const { policy } = resolvePolicy({});
  const said: Partial<Record<keyof Terms, string>> = {
    maxAttempts: `coalesce(enqueue.max_attempts, ${policy.maxAttempts})`,
    deadlineMs: `coalesce(${milliseconds("enqueue.deadline")}::bigint, ${policy.deadlineMs ?? "null"})`,
    keepFinishedMs: "null",
    keepDeadMs: "null",
  };
  const terms = TERM_NAMES.map((name, at) => [TERM_COLUMNS[at], `(${said[name] ?? policy[name]})::bigint`] as const);
  return {
    id: "enqueue.id",
    payload: "asked.body",
    key: "enqueue.key",
    run_at: `${milliseconds("enqueue.run_at")}::bigint`,
    delay_ms: `coalesce(${milliseconds("enqueue.delay")}::bigint, 0)`,
    version: "1",
    limited: "(enqueue.max_attempts is not null or enqueue.deadline is not null)",
    trace: "null::text",
    ...Object.fromEntries(terms),
  };
}

const valueOf = (table: Readonly<Record<string, string>>, column: string): string => {
  const value = table[column];
  if (value === undefined) throw new Error(`a new job of SQL has no value for ${column}`);
  return value;
};

const inThisLane = inUse((column) => valueOf(BELONGING, column));

/** Makes the lane, or takes it into use again. */
function makeLane(s: string): string {
  const { next, insert } = laneStatements(s);
  const [span, kinds] = [firstLane(0, 8) - firstLane(0, 9), firstLane(1, 9)];
  const base = `(9 - asked.rank) * ${span}::bigint + (${bound(next.text, "1")}) * ${kinds}`;
  return bound(insert.text, ...Object.values(BELONGING).map(one), one(base));
}

/** Locks the key; where a job has it already, does what core says of the two. */
function meetKey(s: string): string {
  const { reserve, holders, take, replace } = keyStatements(s, KEPT);
  const [type, key, digest] = ["enqueue.type", "enqueue.key", "asked.digest"].map(one) as [string, string, string];
  const settings = ["run_at", "delay_ms", "trace", ...TERM_COLUMNS].map((column) => valueOf(columns(), column));
  const limited = valueOf(columns(), "limited");
  const changes = ["holder", "asked.lane", "asked.body", "1", limited, "asked.mode = 'debounce'", ...settings];
  const findLane = `select base into asked.lane from ${s}.lane where ${inThisLane} limit 1`;
  return `${bound(reserve.text, type, key, one("enqueue.id"), digest)} into asked.word, asked.word;
    is_ours := found;
    if not is_ours then
      for turn in 1..${TURNS} loop
        -- Read after the lock: a statement that waited sees other tables as they were before.
        select f.* into asked.word, asked.word, holder, holder_digest, enqueue.state from (${bound(holders.text, type, key)}) f;
        exit when not found;
        word := ${meeting()};
        exit when word = 'create';
        if word = 'conflict' then
          ${raisingConflict("holder")};
        elsif word = 'duplicate' then
          id := holder;
          duplicate := true;
          return;
        elsif turn = ${TURNS} then
          ${raising("store_unavailable", `replace(${quoted(changedOften("<id>").message)}, '<id>', holder)`)};
        end if;
        ${findLane};
        if not found then
          ${makeLane(s)};
          ${findLane};
        end if;
        ${bound(replace.text, ...changes)} into asked.seq;
        if found then
          ${bound(take.text, type, key, one("holder"), digest)};
          id := holder;
          state := 'queued';
          replaced := true;
          return;
        end if;
      end loop;
    end if;`;
}

const NOTIFY = (s: string): string => openWakerWithin(wakeNames(s)).notify;

/** Writes the job, unless its id is there; makes its lane where it is not there, or where a prune retires it meanwhile. */
function write(s: string): string {
  const { take } = keyStatements(s, KEPT);
  const key = ["enqueue.type", "enqueue.key", "enqueue.id", "asked.digest"].map(one);
  const { run_at: runAt, delay_ms: delayMs, ...own } = columns();
  const values = INSERTED.filter((column) => column in own).map((column) => `${valueOf(own, column)} as ${column}`);
  return `for turn in 1..${TURNS} loop
    state := 'queued';
    with new as (
      ${insertInto(s, "asked.now_ms")}
      from (select ${values.join(", ")}, base, coalesce(${runAt}, asked.now_ms) + ${delayMs} as due
        from ${s}.lane where ${inThisLane} limit 1 ${KEPT}) as due
      on conflict (id) do nothing returning lane, run_at, seq)
    insert into ${s}.waiting (lane, run_at, seq) select lane, run_at, seq from new;
    exit when found;
    select f.state into enqueue.state from (${bound(statesStatement(s).text, one("enqueue.id"))}) f (id, state);
    duplicate := found;
    exit when duplicate;
    if turn = ${TURNS} then
      ${raising("store_unavailable", quoted(outOfUse().message))};
    end if;
    ${makeLane(s)};
  end loop;
  word := ${NOTIFY(s)};
  if enqueue.key is not null and not is_ours then
    ${bound(take.text, ...key)};
  end if;`;
}

/**
 * Counts the job, in a row of this connection, so that no two transactions wait for each other. A transaction remembers
 * where it has written the row: to look for it would mean to step over every version of it that it has written before.
 */
function count(s: string): string {
  const { counts } = FLOW_TICKS;
  const zero = counts.map((each) => (each === "enqueued" ? "1" : "0"));
  return `if not duplicate then
    minute := asked.now_ms - asked.now_ms % 60000;
    mark := 'redrive.${s}_' || abs(hashtext(enqueue.type)::bigint);
    word := current_setting(mark, true);
    holder := 'sql-' || pg_backend_pid();
    place := case when starts_with(word, minute || ' (') then split_part(word, ' ', 2)::tid end;
    update ${s}.flow f set enqueued = f.enqueued + 1 where f.ctid = asked.place and f.minute = asked.minute
      and f.type = enqueue.type and f.holder = asked.holder returning f.ctid into asked.place;
    if not found then
      insert into ${s}.flow (${tickColumns(FLOW_TICKS)}) values (enqueue.type, asked.minute, asked.holder, ${zero.join(", ")})
        ${addCounts(FLOW_TICKS)} returning flow.ctid into asked.place;
    end if;
    word := set_config(mark, minute || ' ' || place, true);
  end if;`;
}

/** Store time without a query of its own: in the function that would cost more than the time itself. */
const NOW_HERE = NOW.slice("(select ".length, -1);

/** Creates the function in a schema of this name, or brings it into its present form; only its owner may call a new one. */
export const enqueueFunction = (s: string): string => `
create or replace function ${s}.enqueue(${PARAMETERS.join(", ")})
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $enqueue$
#variable_conflict use_column
<<asked>>
declare
  body text := enqueue.payload::text;
  mode text := coalesce(enqueue.unique_mode, '${UNIQUE_MODES[0]}');
  in_queue text := coalesce(enqueue.queue, 'default');
  rank int := coalesce(enqueue.priority, 0);
  digest text;
  lane bigint;
  holder text;
  holder_digest text;
  is_ours boolean;
  seq bigint;
  now_ms bigint := ${NOW_HERE};
  minute bigint;
  mark text;
  place tid;
  brackets text;
  fault text;
  word text;
begin
  ${checks()}
  duplicate := false;
  replaced := false;
  if enqueue.id is null then
    seq := floor(extract(epoch from clock_timestamp()) * 1000000)::bigint;
    word := lpad(to_hex(seq / 1000), 12, '0');
    id := ${NEW_ID};
  else
    select f.state into enqueue.state from (${bound(statesStatement(s).text, one("enqueue.id"))}) f (id, state);
    if found then
      duplicate := true;
      return;
    end if;
  end if;
  if enqueue.key is not null then
    digest := encode(sha256(convert_to(asked.body, 'UTF8')), 'hex');
    ${meetKey(s)}
  end if;
  ${write(s)}
  ${count(s)}
end $enqueue$;
revoke all on function ${s}.enqueue from public;
`;
