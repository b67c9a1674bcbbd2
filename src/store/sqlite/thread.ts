// The store thread: the only one of its process that touches the file. Whatever has arrived while a group was being
// written goes with the next one, so commits are shared under load and nobody waits when there is none. Groups are
// bounded, so that a heartbeat never waits long.
import { isRedriveError } from "../../core/errors.ts";
import { realSystem } from "../../system/real.ts";
import { blockThread, insideThread } from "../../system/threads.ts";
import { type Engine, openEngine, type Reply, type Request } from "./engine.ts";
import { type ErrorWire, packError } from "./facade.ts";
import { fileIdentity, prepareFile } from "./file.ts";
import { type Beating, type PulseWire, startPulse } from "./pulse.ts";
import { NEW_JOB_WIDTH, type SettleWire } from "./wire.ts";

/** A request under the number its answer will carry. */
export type Numbered = readonly [number, Request];
/** What travels to the thread: requests, a pulse to start, or the number of one to stop. */
export type Message = readonly Numbered[] | { readonly pulse: PulseWire } | { readonly unpulse: number };
/** An answer on its way back; those of a pulse carry its number, negative. */
export type Answer = readonly [number, { readonly value: unknown } | { readonly error: ErrorWire }];

/** Rows written in one transaction, about; a larger request still goes as a whole. */
const GROUP_ROWS = 1_000;

/** Rows of an enqueue that are worth a commit of their own. */
const CROWD = 32;

/** How often we look whether the file was deleted or replaced under us. */
const CHECK_FILE_EVERY_MS = 1_000;

const thread = insideThread();
const { path } = thread.data as { path: string };
const pulses = new Map<number, Beating>();
let engine: Engine | null = null;
let identity: string | null = null;
let checkedAt = 0;

function rows({ verb, args }: Request): number {
  if (verb === "enqueue") return (args[0] as unknown[]).length / NEW_JOB_WIDTH;
  if (verb === "settle") return (args[0] as SettleWire).flat.length / 4;
  if (verb === "claim") return (args[0] as { limit: number }).limit;
  return 1;
}

/** Takes from the front what goes into one transaction; heartbeats jump the line. */
function nextGroup(waiting: Numbered[]): Numbered[] {
  const beats = waiting.filter(([, request]) => request.verb === "beat");
  const others = beats.length === 0 ? waiting : waiting.filter(([, request]) => request.verb !== "beat");
  let count = 0;
  let weight = 0;
  while (count < others.length && weight < GROUP_ROWS) {
    const [, request] = others[count++] as Numbered;
    const size = rows(request);
    weight += size;
    // Whoever waits for a crowd of new jobs is answered before the next crowd is written.
    if (request.verb === "enqueue" && size >= CROWD) break;
  }
  const group = beats.concat(others.slice(0, count));
  waiting.splice(0, waiting.length, ...others.slice(count));
  return group;
}

/** The engine on the file that lies at the path now: opened when first needed, and again when the file was replaced. */
function current(): Engine {
  const now = realSystem.monotonic();
  if (engine && now - checkedAt > CHECK_FILE_EVERY_MS) {
    checkedAt = now;
    if (fileIdentity(path) !== identity) {
      engine.close();
      engine = null;
    }
  }
  if (engine) return engine;
  prepareFile(path);
  engine = openEngine({ path, clock: realSystem.now, blockMs: blockThread, random: realSystem.random });
  identity = fileIdentity(path);
  checkedAt = now;
  return engine;
}

function carryOut(requests: readonly Request[]): Reply[] {
  try {
    return current().carryOut(requests);
  } catch (error) {
    if (!isRedriveError(error)) throw error;
    return requests.map(() => ({ error }));
  }
}

function answer(number: number, reply: Reply): Answer {
  return [number, "error" in reply ? { error: packError(reply.error) } : reply];
}

function sort(messages: readonly unknown[]): Numbered[] {
  const requests: Numbered[] = [];
  for (const message of messages as Message[]) {
    if ("pulse" in message) {
      const { number } = message.pulse;
      const tell = (reply: Reply): void => thread.post([answer(-number, reply)]);
      pulses.set(
        number,
        startPulse(message.pulse, realSystem, (request) => carryOut([request])[0] as Reply, tell),
      );
    } else if ("unpulse" in message) {
      pulses.get(message.unpulse)?.stop();
      pulses.delete(message.unpulse);
    } else requests.push(...message);
  }
  return requests;
}

function work(messages: unknown[]): void {
  const waiting = sort(messages);
  while (waiting.length > 0) {
    for (const pulse of pulses.values()) pulse.catchUp();
    const group = nextGroup(waiting);
    const replies = carryOut(group.map(([, request]) => request));
    thread.post(group.map(([number], at) => answer(number, replies[at] as Reply)));
    waiting.push(...sort(thread.arrived()));
  }
}

thread.on({
  messages: work,
  stop() {
    for (const pulse of pulses.values()) pulse.stop();
    engine?.close();
  },
});
