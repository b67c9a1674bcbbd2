// The thread of a heartbeat: one connection, one statement every few seconds. A heartbeat without an answer in time is
// given up with its connection, and the next one comes sooner.
import type pg from "pg";
import { realSystem } from "../../system/real.ts";
import { insideThread } from "../../system/threads.ts";
import { watchLiveness } from "../liveness-counter.ts";
import type { BeatAnswer } from "../store.ts";
import { type PostgresValue, queryOf } from "./driver.ts";
import { loadPg } from "./load-pg.ts";
import { translate } from "./errors.ts";
import { inTime } from "./timeout.ts";
import type { PulseData } from "./pulse.ts";
import { beatAnswer, beatText } from "./workers.ts";

/** What the thread reports after every heartbeat. */
export type PulseWord = { readonly answer: BeatAnswer } | { readonly failure: string };

const thread = insideThread();
const { request, shared, config, schema, known, place } = thread.data as PulseData;
const { worker, leaseMs, everyMs, stallMs } = request;
const owner = watchLiveness(shared, stallMs, realSystem.monotonic);
const ending = new AbortController();
const statement = { name: "beat", text: beatText(schema, known) };
/** A heartbeat must leave time for another one before the lease ends. */
const PATIENCE_MS = Math.max(200, Math.min(leaseMs / 4, 5_000));

let client: pg.Client | null = null;
/** The last password that the owner sent, where a function supplies it. */
let password: { readonly password: string } | null = null;

/** Gives up a connection; ignores late events of one that was given up before. */
function drop(old: pg.Client | null): void {
  if (client === old) client = null;
  void old?.end().catch(() => undefined);
}

async function beat(startedThrough: number): Promise<PulseWord> {
  try {
    if (!client) {
      const made = new (loadPg().Client)({ ...config, ...password });
      made.on("error", () => drop(made));
      client = made;
      await inTime(client.connect(), PATIENCE_MS, realSystem);
    }
    const query = client.query<PostgresValue[]>(queryOf(statement, [worker, leaseMs, startedThrough], false));
    return { answer: beatAnswer((await inTime(query, PATIENCE_MS, realSystem)).rows[0]) };
  } catch (error) {
    drop(client);
    return { failure: translate(error, place).message };
  }
}

async function pulse(): Promise<void> {
  let waitMs = everyMs;
  while (!ending.signal.aborted) {
    await realSystem.sleep(waitMs, ending.signal);
    if (ending.signal.aborted) break;
    if (owner.isStalled()) continue;
    const word = await beat(owner.startedThrough());
    // Sooner than usual after a failure, because the lease is running out.
    waitMs = "failure" in word ? Math.min(everyMs, leaseMs / 10) * (0.5 + realSystem.random()) : everyMs;
    thread.post(word);
  }
  drop(client);
}

thread.on({
  turn(messages) {
    for (const message of messages) password = { password: message as string };
    return false;
  },
  stop: () => ending.abort(),
});
void pulse();
